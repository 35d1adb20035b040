import { useState } from "preact/hooks";
import { linkTo } from "../place.ts";
import { goTo } from "../router.ts";
import { linkOf } from "./operator-names.tsx";

/** Goes to what an id is of, and finds accounts by any other text. */
export function Find() {
  const [text, setText] = useState("");
  return (
    <form
      role="search"
      aria-label="Find"
      class="find"
      onSubmit={(event) => {
        event.preventDefault();
        const wanted = text.trim();
        if (wanted === "") return;
        setText("");
        goTo(linkOf(wanted) ?? linkTo(["accounts"], { search: wanted }));
      }}
    >
      <input
        type="search"
        aria-label="Find"
        placeholder="Find an id or a name"
        value={text}
        onInput={({ currentTarget: { value } }) => setText(value)}
      />
    </form>
  );
}
