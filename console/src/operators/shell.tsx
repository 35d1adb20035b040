import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Session } from "../api/types.ts";
import { Button } from "../components/button.tsx";
import { Mark } from "../components/mark.tsx";
import { ThemeChoice } from "../components/theme.tsx";
import { linkTo } from "../place.ts";
import { zoneText } from "../words.ts";
import { Find } from "./find.tsx";
import { sections } from "./pages.tsx";

/** What stands around every page: the mark, the sections, who has signed in. */
export function Shell({
  children,
  onSignOut,
  section,
  session,
}: {
  readonly session: Session;
  /** The section that the present page belongs to. */
  readonly section: string;
  readonly onSignOut: () => void;
  readonly children: ComponentChildren;
}) {
  const [open, setOpen] = useState(false);
  useEffect(() => {
    const close = (): void => setOpen(false);
    addEventListener("hashchange", close);
    return () => removeEventListener("hashchange", close);
  }, []);
  const { name, role } = session.operator;
  return (
    <div class="shell">
      <a
        class="skip"
        href="#content"
        onClick={(event) => {
          // The address has the page; the focus alone moves.
          event.preventDefault();
          document.getElementById("content")?.focus();
        }}
      >
        To the content
      </a>
      <header class="bar">
        <a class="brand" href={linkTo([])}>
          <Mark /> Tributary
        </a>
        <button
          type="button"
          class="button button-quiet menu"
          aria-expanded={open}
          aria-controls="sections"
          onClick={() => setOpen(!open)}
        >
          Menu
        </button>
      </header>
      <nav id="sections" class={open ? "sections sections-open" : "sections"} aria-label="Sections">
        <Find />
        {sections.map(({ group, pages }) => (
          <div key={group} class="section-group">
            <p class="section-head">{group}</p>
            <ul>
              {pages.map(({ path, title }) => (
                <li key={path}>
                  <a
                    href={linkTo([path])}
                    aria-current={
                      section === path || (path === "" && section === "overview")
                        ? "page"
                        : undefined
                    }
                  >
                    {title}
                  </a>
                </li>
              ))}
            </ul>
          </div>
        ))}
        <div class="who">
          <p>
            <span class="who-name" title={name}>
              {name}
            </span>{" "}
            <span class="quiet">{role}</span>
          </p>
          <p class="quiet" title="Of the times that are shown; a time's own words have it in UTC">
            Times of {zoneText()}
          </p>
          <div class="who-actions">
            <ThemeChoice />
            <Button kind="quiet" onClick={onSignOut}>
              Sign out
            </Button>
          </div>
        </div>
      </nav>
      <main id="content" tabIndex={-1}>
        {children}
      </main>
    </div>
  );
}
