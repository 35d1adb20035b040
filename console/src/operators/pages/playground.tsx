import { useState } from "preact/hooks";
import { ApiError, get, newOnce, send } from "../../api/client.ts";
import type { Account, Page, ShownKey } from "../../api/types.ts";
import { useLoad } from "../../api/use-load.ts";
import { Button } from "../../components/button.tsx";
import { Field } from "../../components/field.tsx";
import { PageHead } from "../../components/page.tsx";
import { Playground } from "../../playground/playground.tsx";
import { useMay } from "../session.ts";

const keyLivesMs = 3_600_000;
/** The newest accounts, which are offered by their names. */
const suggestedMax = 500;

/** Asks the service with the key of an account. */
export function PlaygroundPage() {
  const [secret, setSecret] = useState("");
  return (
    <>
      <PageHead title="Playground">
        <span class="quiet">
          Asks as a caller does. The account of the key pays; the key stays in this page's memory.
        </span>
      </PageHead>
      <Playground
        secret={secret}
        keyField={<KeyField secret={secret} onSecret={setSecret} />}
        url={location.origin}
        linesHint="The lines have this console's address; clients use the service's own instead."
      />
    </>
  );
}

function KeyField({
  onSecret,
  secret,
}: {
  readonly secret: string;
  readonly onSecret: (secret: string) => void;
}) {
  const [typed, setTyped] = useState<string | null>(null);
  const [error, setError] = useState<string | null>(null);
  const mayMake = useMay("billing");
  const { data: accounts } = useLoad("accounts that may pay", (signal) =>
    get<Page<Account>>("/accounts", { query: { limit: suggestedMax }, signal }),
  );
  const known = accounts?.data ?? [];
  // Where there is one account it is meant.
  const account = typed ?? (known.length === 1 ? (known[0]?.id ?? "") : "");
  const make = async (): Promise<void> => {
    setError(null);
    const expires = new Date(Date.now() + keyLivesMs).toISOString();
    const path = `/accounts/${encodeURIComponent(account.trim())}/keys`;
    try {
      const body = { name: "playground", expires_at: expires };
      const made = await send<ShownKey>("POST", path, { body, once: newOnce() });
      onSecret(made.secret ?? "");
    } catch (caught) {
      if (!(caught instanceof ApiError)) throw caught;
      setError(caught.message);
    }
  };
  return (
    <>
      <Field
        label="API key"
        type="password"
        placeholder="trib_…"
        value={secret}
        onInput={(value) => onSecret(value.trim())}
      />
      {mayMake && secret === "" && (
        <details>
          <summary>Make a key that expires in an hour</summary>
          <div class="stack">
            <Field
              label="Account that pays"
              placeholder="Begin with its name, or acct_…"
              value={account}
              error={error}
              suggestions={known.map(({ id, name }) => [id, name])}
              onInput={setTyped}
            />
            <div class="actions">
              <Button disabled={account.trim() === ""} onClick={() => void make()}>
                Make the key
              </Button>
            </div>
          </div>
        </details>
      )}
    </>
  );
}
