import { useState } from "preact/hooks";
import { ApiError, send } from "../api/client.ts";
import type { Session } from "../api/types.ts";
import { Button } from "../components/button.tsx";
import { Field } from "../components/field.tsx";
import { Mark } from "../components/mark.tsx";
import { CopyButton, withCode } from "../components/text.tsx";

const command = "npm run -s tributary -- operator login-link";

/** Takes an operator's token once; from then on the browser has a cookie that no script reads. */
export function SignIn({
  onSession,
  words,
}: {
  /** Why this page is shown, where that is news. */
  readonly words: string | null;
  readonly onSession: (session: Session) => void;
}) {
  const [token, setToken] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const submit = async (): Promise<void> => {
    setBusy(true);
    try {
      onSession(await send<Session>("POST", "/session", { body: { token: token.trim() } }));
    } catch (caught) {
      if (!(caught instanceof ApiError)) throw caught;
      setError(caught.message);
      setBusy(false);
    }
  };
  return (
    <main class="alone">
      <div class="card sign-in">
        <h1 class="brand">
          <Mark /> Tributary
        </h1>
        {words !== null && <p class="notice">{withCode(words)}</p>}
        <form
          class="stack"
          onSubmit={(event) => {
            event.preventDefault();
            if (!busy) void submit();
          }}
        >
          <Field
            label="Operator's token"
            type="password"
            placeholder="trop_…"
            value={token}
            error={error}
            autoFocus
            required
            onInput={setToken}
          />
          <Button type="submit" kind="main" busy={busy}>
            Sign in
          </Button>
        </form>
        <div class="stack">
          <p class="hint">
            No token at hand? On the machine of the service, this prints a link that signs in once:
          </p>
          <div class="code">
            <pre tabIndex={0} aria-label="The command">
              {command}
            </pre>
            <CopyButton text={command} label="Copy the command" />
          </div>
        </div>
      </div>
    </main>
  );
}
