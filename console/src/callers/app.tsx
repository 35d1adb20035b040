import { useEffect, useMemo, useState } from "preact/hooks";
import { AskContext } from "../api/ask.ts";
import { Button } from "../components/button.tsx";
import { Field } from "../components/field.tsx";
import { Mark } from "../components/mark.tsx";
import { PageHead, Tabs } from "../components/page.tsx";
import { ThemeChoice } from "../components/theme.tsx";
import { Toasts } from "../components/toast.tsx";
import { linkTo } from "../place.ts";
import { usePlace } from "../router.ts";
import { zoneText } from "../words.ts";
import { askWith } from "./ask-as-caller.ts";
import { type CallerPage, pageOf, tabs } from "./pages.tsx";

/** What a caller sees with a key. The key is in this page's memory alone. */
export function App() {
  const [key, setKey] = useState("");
  return (
    <>
      <header class="top">
        <span class="brand">
          <Mark /> Tributary
        </span>
        <div class="actions">
          <ThemeChoice />
          {key !== "" && (
            <Button kind="quiet" onClick={() => setKey("")}>
              Forget the key
            </Button>
          )}
        </div>
      </header>
      <main class="callers">
        {key === "" ? <KeyForm onKey={setKey} /> : <Pages secret={key} onKey={setKey} />}
      </main>
      <Toasts />
    </>
  );
}

/** The page that the address names, with all that the key may see. */
function Pages({ onKey, secret }: Parameters<CallerPage["view"]>[0]["caller"]) {
  const { path, query } = usePlace();
  const ask = useMemo(() => askWith(secret), [secret]);
  const page = pageOf(path);
  useEffect(() => {
    document.title = `${page?.title ?? "Not here"} · Tributary`;
    scrollTo(0, 0);
  }, [path.join("/")]);
  return (
    <AskContext.Provider value={ask}>
      <Tabs
        label="Pages"
        current={path[0] ?? ""}
        tabs={tabs.map(([name, title]) => [name, title, linkTo(name === "" ? [] : [name])])}
      />
      {page === null ? (
        <PageHead title="There is no such page">
          <a href={linkTo([])}>Go to your account</a>
        </PageHead>
      ) : (
        page.view({ caller: { secret, onKey }, id: path[1] ?? "", query })
      )}
      <p class="hint zone">Times of {zoneText()}</p>
    </AskContext.Provider>
  );
}

function KeyForm({ onKey }: { readonly onKey: (key: string) => void }) {
  const [typed, setTyped] = useState("");
  return (
    <div class="card sign-in">
      <h1>Your account</h1>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          onKey(typed.trim());
        }}
      >
        <Field
          label="API key"
          type="password"
          placeholder="trib_…"
          value={typed}
          onInput={setTyped}
          hint="The operator of this service gives you one. It stays in this page's memory: a reload forgets it."
          required
          autoFocus
        />
        <Button type="submit" kind="main">
          Show the account
        </Button>
      </form>
    </div>
  );
}
