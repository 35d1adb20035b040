import { expect, test } from "vitest";
import { leftOutText, nameOfMedia } from "../../src/formats/media-parts.ts";

test("media is known by its type, and no name of an object's own is media", () => {
  expect(nameOfMedia({ type: "image_url" })).toBe("image");
  expect(nameOfMedia({ type: "document" })).toBe("file");
  expect(nameOfMedia({ type: "text" })).toBeNull();
  for (const type of ["constructor", "__proto__", "toString", 5, null])
    expect(nameOfMedia({ type })).toBeNull();
  expect(leftOutText("image")).toBe("[image left out: this service reads text only]");
});
