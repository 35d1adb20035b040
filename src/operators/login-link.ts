/** The console's address with a code that signs in once: behind `#`, which browsers send to no server and no log has. */
export function loginLink(url: string, code: string): string {
  const address = URL.parse(url);
  // Where all addresses of a machine are listened to, its own browser takes this one.
  if (address !== null && ["0.0.0.0", "[::]"].includes(address.hostname))
    address.hostname = "127.0.0.1";
  return `${(address?.href ?? url).replace(/\/$/, "")}/#sign-in=${code}`;
}
