// The lines that the command `connect` prints: the one module of the service whose code is in the page too.
import { agentContextTokensMin, clients } from "../../../../src/cli/client-recipes.ts";
import { CodeLines } from "../../components/code-lines.tsx";
import { PageHead, Section } from "../../components/page.tsx";
import { countText } from "../../words.ts";

type Name = keyof typeof clients;
const titles: Readonly<Record<Name, string>> = {
  curl: "curl",
  python: "Python",
  typescript: "TypeScript",
  langchain: "LangChain",
  "openai-agents": "OpenAI Agents",
  claude: "Coding agents",
  codex: "Coding agents",
  opencode: "Coding agents",
};
const sections = Map.groupBy(Object.keys(titles) as Name[], (name) => titles[name]);

/** Lines that are ready to paste, for each client that is known, with the key in them. */
export function ClientsPage({ secret }: { readonly secret: string }) {
  const access = { url: location.origin, key: secret };
  return (
    <>
      <PageHead title="Clients">
        <span class="quiet">Lines that are ready to paste. Your key is in them.</span>
      </PageHead>
      {[...sections].map(([title, names]) => (
        <Section
          key={title}
          title={title}
          hint={names.some((name) => clients[name].agent) && agentsHint}
        >
          {names
            .flatMap((name) => clients[name].recipes(access, 2 * agentContextTokensMin))
            .map((recipe) => (
              <CodeLines key={recipe.title} {...recipe} />
            ))}
        </Section>
      ))}
    </>
  );
}

const agentsHint = `They need a model that calls tools and has at least ${countText(agentContextTokensMin)} tokens of context. Ask the operator of this service whether its model is one.`;
