import { Field } from "../../components/field.tsx";
import { PageHead } from "../../components/page.tsx";
import { Playground } from "../../playground/playground.tsx";

/** Asks the service with the key. */
export function PlaygroundPage({
  onKey,
  secret,
}: {
  readonly secret: string;
  readonly onKey: (key: string) => void;
}) {
  return (
    <>
      <PageHead title="Playground">
        <span class="quiet">Each request is charged to this account, as any other.</span>
      </PageHead>
      <Playground
        secret={secret}
        keyField={
          <Field
            label="API key"
            type="password"
            value={secret}
            onInput={(next) => next.trim() !== "" && onKey(next.trim())}
          />
        }
        url={location.origin}
      />
    </>
  );
}
