import { expect, test } from "vitest";
import { isInside, urlProblem } from "../../src/webhooks/endpoint-address.ts";

test.each([
  "127.0.0.1",
  "127.255.255.254",
  "0.0.0.0",
  "0.1.2.3",
  "10.0.0.1",
  "172.16.0.1",
  "172.31.255.255",
  "192.168.1.1",
  "169.254.169.254",
  "100.64.0.1",
  "100.100.100.200",
  "100.127.255.255",
  "192.0.0.8",
  "192.0.2.1",
  "198.18.0.1",
  "198.51.100.7",
  "203.0.113.9",
  "224.0.0.1",
  "240.0.0.1",
  "255.255.255.255",
  "::",
  "::1",
  "::ffff:127.0.0.1",
  "::ffff:8.8.8.8",
  "::ffff:7f00:1",
  "::127.0.0.1",
  "64:ff9b::7f00:1",
  "64:ff9b:1::1",
  "fe80::1",
  "fe80::1%eth0",
  "fec0::1",
  "fc00::1",
  "fd00:ec2::254",
  "ff02::1",
  "2001::1",
  "2001:db8::1",
  "2002:7f00:1::",
  "3fff::1",
  "5f00::1",
  "no address",
  "",
])("%s is inside", (address) => {
  expect(isInside(address)).toBe(true);
});

test.each([
  "8.8.8.8",
  "100.63.255.255",
  "100.128.0.1",
  "172.15.0.1",
  "172.32.0.1",
  "192.169.0.1",
  "223.255.255.255",
  "2606:4700::1111",
  "2a00::1",
  "2001:4860:4860::8888",
])("%s is reached from everywhere", (address) => {
  expect(isInside(address)).toBe(false);
});

test.each([
  "https://127.0.0.1/",
  "https://localhost/",
  "https://LOCALHOST./",
  "https://shop.localhost/",
  "https://2130706433/",
  "https://0177.0.0.1/",
  "https://0x7f.1/",
  "https://127.1/",
  "https://0/",
  "https://[::1]/",
  "https://[::ffff:10.0.0.1]/",
  "https://169.254.169.254/latest/meta-data/",
  "https://127。0。0。1/",
])("%s points inside", (url) => {
  expect(urlProblem(url, "refuse")).toContain("private network");
  expect(urlProblem(url, "allow")).toBeNull();
});

test("only whole https addresses without a password are taken, and http where private networks are", () => {
  expect(urlProblem("https://shop.example/events?tenant=7", "refuse")).toBeNull();
  expect(urlProblem("http://shop.example/", "refuse")).toContain("is not https");
  expect(urlProblem("http://shop.example/", "allow")).toBeNull();
  for (const url of ["", "shop.example", "ftp://shop.example/", "file:///etc/passwd", "https://"])
    expect(urlProblem(url, "allow"), url).toContain("is no address");
  expect(urlProblem("https://ann:secret@shop.example/", "allow")).toContain("a password");
});
