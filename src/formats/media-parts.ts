import { type Fields, notOfferedField } from "./read-fields.ts";

const mediaNouns: Readonly<Record<string, string>> = {
  image: "image",
  image_url: "image",
  input_image: "image",
  audio: "audio",
  input_audio: "audio",
  file: "file",
  input_file: "file",
  document: "file",
  video: "video",
  video_url: "video",
  input_video: "video",
};

/** The noun of a media part, such as `image` for `image_url`; null for what is no media. */
export function nameOfMedia(part: Fields): string | null {
  const type = part["type"];
  return typeof type === "string" && Object.hasOwn(mediaNouns, type)
    ? (mediaNouns[type] ?? null)
    : null;
}

/** What stands in a tool result for media: refusing it would end the session, as the history repeats it. */
export function leftOutText(noun: string): string {
  return `[${noun} left out: this service reads text only]`;
}

/** A 400 for media in what a user says. */
export function refuseMedia(noun: string, param: string): never {
  throw notOfferedField(
    param,
    `holds ${noun} content; this service reads text only. Send it as text or leave it out.`,
  );
}
