import { useEffect, useState } from "preact/hooks";
import { ApiError, get, onSessionEnd, send } from "../api/client.ts";
import type { Session } from "../api/types.ts";
import { Mark } from "../components/mark.tsx";
import { PageHead } from "../components/page.tsx";
import { Failed } from "../components/state.tsx";
import { Toasts } from "../components/toast.tsx";
import { linkTo } from "../place.ts";
import { goTo, usePlace } from "../router.ts";
import { findPage } from "./pages.tsx";
import { SessionContext } from "./session.ts";
import { Shell } from "./shell.tsx";
import { SignIn } from "./sign-in.tsx";

type State =
  | { readonly name: "asking" }
  | { readonly name: "out"; readonly words: string | null }
  | { readonly name: "failed"; readonly error: ApiError }
  | { readonly name: "in"; readonly session: Session };

/** The console: signs in, then shows the page that the address names. */
export function App() {
  const [state, setState] = useState<State>({ name: "asking" });
  const begin = async (): Promise<void> => {
    setState({ name: "asking" });
    try {
      setState({ name: "in", session: await openSession() });
    } catch (caught) {
      if (!(caught instanceof ApiError)) throw caught;
      if (caught.status === 401)
        setState({ name: "out", words: caught.code === "no_session" ? null : caught.message });
      else setState({ name: "failed", error: caught });
    }
  };
  useEffect(() => {
    void begin();
    return onSessionEnd(() =>
      setState({ name: "out", words: "The session has ended. Sign in again to go on." }),
    );
  }, []);
  return (
    <>
      {state.name === "out" && (
        <SignIn words={state.words} onSession={(session) => setState({ name: "in", session })} />
      )}
      {state.name === "failed" && (
        <main class="alone">
          <h1 class="brand">
            <Mark /> Tributary
          </h1>
          <Failed error={state.error} what="the console" retry={() => void begin()} stale={false} />
        </main>
      )}
      {state.name === "in" && (
        <SessionContext.Provider value={state.session}>
          <SignedIn
            session={state.session}
            onSignOut={() => setState({ name: "out", words: "You have signed out." })}
          />
        </SessionContext.Provider>
      )}
      <Toasts />
    </>
  );
}

function SignedIn({
  onSignOut,
  session,
}: {
  readonly session: Session;
  readonly onSignOut: () => void;
}) {
  const place = usePlace();
  const page = findPage(place);
  useEffect(() => {
    document.title = `${page?.title ?? "Not here"} · Tributary`;
    scrollTo(0, 0);
  }, [place.path.join("/")]);
  const signOut = async (): Promise<void> => {
    await send("DELETE", "/session").catch(() => null);
    onSignOut();
  };
  return (
    <Shell session={session} section={place.path[0] ?? "overview"} onSignOut={() => void signOut()}>
      {page === null ? (
        <PageHead title="There is no such page">
          <a href={linkTo([])}>Go to the overview</a>
        </PageHead>
      ) : (
        page.view
      )}
    </Shell>
  );
}

/** By the link that was followed, else by the cookie that the browser has. */
async function openSession(): Promise<Session> {
  const [, code] = /^#sign-in=(.+)$/.exec(location.hash) ?? [];
  if (code === undefined) return get<Session>("/session").catch(rename);
  // The code works once; it is not left in the address all the same.
  goTo(linkTo([]), true);
  return send<Session>("POST", "/session", { body: { link: code } });
}

/** No session at all is no news for one who comes for the first time. */
function rename(error: unknown): never {
  if (!(error instanceof ApiError) || error.status !== 401 || error.code === "session_over")
    throw error;
  throw new ApiError({ status: 401, code: "no_session", detail: error.message });
}
