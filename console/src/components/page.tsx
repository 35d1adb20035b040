import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

/** The head of a page: where it is, what it is, and what can be done. */
export function PageHead({
  actions,
  badge,
  children,
  title,
  trail,
}: {
  readonly title: string;
  /** The pages above it. */
  readonly trail?: readonly (readonly [title: string, link: string])[];
  readonly badge?: ComponentChildren;
  readonly actions?: ComponentChildren;
  /** A line below the title. */
  readonly children?: ComponentChildren;
}) {
  return (
    <div class="page-head">
      <div class="page-title">
        {trail !== undefined && (
          <nav aria-label="Above this page" class="trail">
            {trail.map(([words, link]) => (
              <a key={link} href={link}>
                {words}
              </a>
            ))}
          </nav>
        )}
        <h1>
          <span>{title}</span> {badge}
        </h1>
        {children !== undefined && <div class="page-line">{children}</div>}
      </div>
      {actions !== undefined && actions !== false && <div class="actions">{actions}</div>}
    </div>
  );
}

/** A part of a page with its own head. */
export function Section({
  actions,
  children,
  hint,
  title,
}: {
  readonly title: string;
  readonly hint?: ComponentChildren;
  readonly actions?: ComponentChildren;
  readonly children: ComponentChildren;
}) {
  return (
    <section class="section">
      <div class="section-title">
        <h2>{title}</h2>
        {actions !== undefined && <div class="actions">{actions}</div>}
      </div>
      {hint !== undefined && hint !== false && <p class="hint">{hint}</p>}
      {children}
    </section>
  );
}

/** Figures side by side. */
export function Figures({ children }: { readonly children: ComponentChildren }) {
  return <dl class="figures">{children}</dl>;
}

/** One figure with its name; with a link, what it is made of. */
export function Figure({
  children,
  href,
  name,
  note,
}: {
  readonly name: string;
  readonly children: ComponentChildren;
  readonly note?: ComponentChildren;
  readonly href?: string;
}) {
  return (
    <div class="figure">
      <dt>{name}</dt>
      <dd>{href === undefined ? children : <a href={href}>{children}</a>}</dd>
      {note !== undefined && <dd class="figure-note">{note}</dd>}
    </div>
  );
}

/** Names and values, one below the other. */
export function Facts({
  rows,
}: {
  readonly rows: readonly (readonly [name: string, value: ComponentChildren])[];
}) {
  return (
    <dl class="facts">
      {rows.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Parts of a page of which one is shown; each has an address of its own. */
export function Tabs({
  current,
  label,
  tabs,
}: {
  readonly label: string;
  readonly current: string;
  readonly tabs: readonly (readonly [name: string, title: string, link: string])[];
}) {
  const place = useRef<HTMLElement>(null);
  // Where the tabs scroll the one that is shown may be beyond the edge.
  useLayoutEffect(() => {
    const [nav, shown] = [place.current, place.current?.querySelector("a[aria-current]")];
    if (nav === null || !(shown instanceof HTMLElement)) return;
    const [left, right] = [shown.offsetLeft, shown.offsetLeft + shown.offsetWidth];
    nav.scrollLeft = Math.min(Math.max(nav.scrollLeft, right - nav.clientWidth), left);
  }, [current]);
  return (
    <nav ref={place} class="tabs" aria-label={label}>
      {tabs.map(([name, title, link]) => (
        <a key={name} href={link} aria-current={name === current ? "page" : undefined}>
          {title}
        </a>
      ))}
    </nav>
  );
}
