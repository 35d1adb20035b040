import { useState } from "preact/hooks";
import type { AuditRow } from "../../api/types.ts";
import { Button } from "../../components/button.tsx";
import { Field } from "../../components/field.tsx";
import { PageHead } from "../../components/page.tsx";
import { Empty, Loading } from "../../components/state.tsx";
import { type Column, PagedTable } from "../../components/table.tsx";
import { Time } from "../../components/text.tsx";
import { linkTo } from "../../place.ts";
import { goTo } from "../../router.ts";
import { Named, useOperatorNames } from "../operator-names.tsx";

function columnsOf(names: ReadonlyMap<string, string>): readonly Column<AuditRow>[] {
  return [
    { head: "Time", cell: ({ at }) => <Time at={at} /> },
    { head: "Who", cell: ({ actor }) => <Named id={actor} names={names} /> },
    { head: "Action", names: true, cell: ({ action }) => action },
    { head: "Target", cell: ({ target }) => <Named id={target} names={names} /> },
    { head: "Before and after", cell: (row) => <Change row={row} /> },
  ];
}

/** Who changed what. */
export function AuditPage({ query }: { readonly query: URLSearchParams }) {
  const filters = {
    actor: query.get("actor") ?? "",
    action: query.get("action") ?? "",
    target: query.get("target") ?? "",
  };
  const names = useOperatorNames();
  return (
    <>
      <PageHead title="Audit">
        <span class="quiet">
          Every change by an operator or a command, written in the same transaction as the change.
        </span>
      </PageHead>
      <FilterForm key={query.toString()} filters={filters} />
      {/* The names would move what stands beside them. */}
      {names === null ? (
        <Loading what="the changes" />
      ) : (
        <PagedTable
          caption="Changes"
          path="/audit"
          query={filters}
          columns={columnsOf(names)}
          idOf={({ sequence }) => String(sequence)}
          empty={
            <Empty title="No change is like that">
              <p>
                <a href={linkTo(["audit"])}>Show all changes</a>
              </p>
            </Empty>
          }
        />
      )}
    </>
  );
}

function Change({ row: { after, before } }: { readonly row: AuditRow }) {
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])].filter(
    (name) => before?.[name] !== after?.[name],
  );
  return (
    <ul class="changes">
      {names.map((name) => (
        <li key={name}>
          <span class="quiet">{name}</span>{" "}
          {before !== null && name in before && (
            <>
              <del>{valueText(before[name])}</del>{" "}
            </>
          )}
          {after !== null && name in after && <ins>{valueText(after[name])}</ins>}
        </li>
      ))}
    </ul>
  );
}

/** A value of a change in words; an empty one is "none". */
function valueText(value: NonNullable<AuditRow["after"]>[string] | undefined): string {
  return value === null || value === "" ? "none" : String(value);
}

interface Filters {
  readonly actor: string;
  readonly action: string;
  readonly target: string;
}

function FilterForm({ filters }: { readonly filters: Filters }) {
  const [wanted, setWanted] = useState(filters);
  return (
    <form
      class="filters"
      aria-label="Which changes"
      onSubmit={(event) => {
        event.preventDefault();
        goTo(linkTo(["audit"], { ...wanted }));
      }}
    >
      <Field
        label="Who"
        value={wanted.actor}
        placeholder="oper_… or user:…"
        onInput={(actor) => setWanted({ ...wanted, actor })}
      />
      <Field
        label="Action"
        value={wanted.action}
        placeholder="account.credit"
        onInput={(action) => setWanted({ ...wanted, action })}
      />
      <Field
        label="Target"
        value={wanted.target}
        placeholder="acct_…"
        onInput={(target) => setWanted({ ...wanted, target })}
      />
      <div class="actions">
        <Button type="submit">Show</Button>
        {Object.values(filters).some((value) => value !== "") && (
          <a href={linkTo(["audit"])}>All</a>
        )}
      </div>
    </form>
  );
}
