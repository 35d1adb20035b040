import { useState } from "preact/hooks";
import { getAll, send } from "../../api/client.ts";
import type { Operator, ShownOperator } from "../../api/types.ts";
import { useLoad } from "../../api/use-load.ts";
import { Button } from "../../components/button.tsx";
import { FormDialog } from "../../components/form-dialog.tsx";
import { PageHead } from "../../components/page.tsx";
import { useSecret } from "../../components/secret.tsx";
import { Loaded } from "../../components/state.tsx";
import { type Column, nameColumn, Table } from "../../components/table.tsx";
import { Badge, Time } from "../../components/text.tsx";
import { say } from "../../components/toast.tsx";
import { linkTo } from "../../place.ts";
import { useMay } from "../session.ts";

/** Who may administer. */
export function OperatorsPage() {
  const load = useLoad("operators", (signal) => getAll<Operator>("/operators", { signal }));
  const [making, setMaking] = useState(false);
  const [revoking, setRevoking] = useState<Operator | null>(null);
  const secret = useSecret("token");
  const mayChange = useMay("owner");
  const columns: readonly Column<Operator>[] = [
    nameColumn("Operator"),
    { head: "Role", cell: ({ role }) => role },
    {
      head: "Status",
      cell: ({ revoked_at: revoked }) =>
        revoked === null ? <Badge tone="good">active</Badge> : <Badge>revoked</Badge>,
    },
    { head: "Made", cell: ({ created_at: at }) => <Time at={at} /> },
    {
      head: "",
      cell: (operator) => (
        <div class="row-actions">
          <a href={linkTo(["audit"], { actor: operator.id })}>What it changed</a>
          {mayChange && operator.revoked_at === null && (
            <Button
              kind="quiet-danger"
              label={`Revoke the operator ${operator.name}`}
              onClick={() => setRevoking(operator)}
            >
              Revoke
            </Button>
          )}
        </div>
      ),
    },
  ];
  return (
    <>
      <PageHead
        title="Operators"
        actions={
          mayChange && (
            <Button kind="main" onClick={() => setMaking(true)}>
              New operator
            </Button>
          )
        }
      >
        <span class="quiet">
          People and programs that administer, each with a role and a token.
        </span>
      </PageHead>
      <Loaded load={load} what="the operators">
        {({ data }) => (
          <Table caption="Operators" columns={columns} rows={data} idOf={({ id }) => id} />
        )}
      </Loaded>
      {making && (
        <NewOperator
          onClose={() => setMaking(false)}
          onMade={(made) => {
            secret.show(made, { action: "Revoke it", run: () => setRevoking(made) });
            void load.reload();
          }}
        />
      )}
      {revoking !== null && (
        <FormDialog
          title={`Revoke the operator ${revoking.name}?`}
          action="Revoke the operator"
          danger
          onClose={() => setRevoking(null)}
          run={async (once) => {
            await send("DELETE", `/operators/${revoking.id}`, { once });
            say(`${revoking.name} is revoked`);
            await load.reload();
          }}
        >
          <p>Its token and its sessions end at once, for good.</p>
        </FormDialog>
      )}
      {secret.dialog}
    </>
  );
}

function NewOperator({
  onClose,
  onMade,
}: {
  readonly onClose: () => void;
  readonly onMade: (operator: ShownOperator) => void;
}) {
  return (
    <FormDialog
      title="New operator"
      action="Make the operator"
      onClose={onClose}
      fields={{
        name: { label: "Name", required: true },
        role: {
          label: "Role",
          choices: [
            ["viewer", "viewer: reads"],
            ["billing", "billing: also accounts, keys and credit"],
            ["owner", "owner: everything"],
          ],
        },
      }}
      run={async (once, { name, role }) => {
        const body = { name: name.trim(), role };
        onMade(await send<ShownOperator>("POST", "/operators", { body, once }));
      }}
    />
  );
}
