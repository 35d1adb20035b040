// The lines that the command `connect` prints: the one module of the service whose code is in the page too.
import {
  agentContextTokensMin,
  agentsNeedMore,
  clients,
} from "../../../../src/cli/client-recipes.ts";
import { CodeLines } from "../../components/code-lines.tsx";
import { PageHead, Section } from "../../components/page.tsx";

/** Lines that are ready to paste, for each client that is known, with the key in them. */
export function ClientsPage({ secret }: { readonly secret: string }) {
  const access = { url: location.origin, key: secret };
  return (
    <>
      <PageHead title="Clients">
        <span class="quiet">Lines that are ready to paste. Your key is in them.</span>
      </PageHead>
      {Object.entries(clients).map(([name, { agent, recipes, title }]) => (
        <Section key={name} title={name} hint={agent ? `${title}. ${agentsNeedMore}` : title}>
          {recipes(access, 2 * agentContextTokensMin).map((recipe) => (
            <CodeLines key={recipe.title} {...recipe} />
          ))}
        </Section>
      ))}
    </>
  );
}
