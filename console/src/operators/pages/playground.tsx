import { useState } from "preact/hooks";
import { ApiError, newOnce, send } from "../../api/client.ts";
import type { ShownKey } from "../../api/types.ts";
import { Button } from "../../components/button.tsx";
import { Field } from "../../components/field.tsx";
import { PageHead } from "../../components/page.tsx";
import { Playground } from "../../playground/playground.tsx";
import { useMay } from "../session.ts";

const keyLivesMs = 3_600_000;

/** Asks the service with the key of an account. */
export function PlaygroundPage() {
  const [secret, setSecret] = useState("");
  return (
    <>
      <PageHead title="Playground">
        <span class="quiet">
          Asks as a caller does, with an API key, which pays. The key stays in this page's memory.
        </span>
      </PageHead>
      <Playground
        secret={secret}
        keyField={<KeyField secret={secret} onSecret={setSecret} />}
        url={location.origin}
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
  const [account, setAccount] = useState("");
  const [error, setError] = useState<string | null>(null);
  const mayMake = useMay("billing");
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
              placeholder="acct_…"
              value={account}
              error={error}
              onInput={setAccount}
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
