#!/usr/bin/env bash
# Builds deploy/container/Containerfile without a daemon and without a registry of images, on a base that is made here of Debian
# packages and of this project's own Node, and runs it as deploy/compose/compose.yaml says: run-services.ts. As root, in about three
# minutes, with Debian's buildah, mmdebstrap, crun, dnsmasq-base, iproute2, openssl, python3-yaml, postgresql and prometheus. What it
# makes is in a folder that goes at the end. Prints one line `image ok` when all is well; exits 77 where namespaces are refused.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder="$(mktemp -d)"
# Services run as users of their own.
chmod 711 "$folder"
export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot
storage=(--root "$folder/storage" --runroot "$folder/run")
trap 'rm -rf "$folder"' EXIT

# Debian's source as this machine has it, and whatever npm is set up with here.
mmdebstrap --quiet --variant=minbase --mode=root --include=ca-certificates,libatomic1 bookworm "$folder/base.tar"
mkdir "$folder/node"
node="$(readlink -f "$(dirname "$(readlink -f node_modules/node)")/node/bin/node")"
cp "$node" "$folder/node/node"
cp -aL "$(dirname "$(readlink -f "$(command -v npm)")")/.." "$folder/node/npm"
cat > "$folder/node/Containerfile" <<'BASE'
FROM scratch
ADD base.tar /
COPY node /usr/local/bin/node
COPY npm /usr/local/lib/node_modules/npm
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm && ln -s ../lib/node_modules/npm/bin/npx-cli.js /usr/local/bin/npx
BASE
mv "$folder/base.tar" "$folder/node/"
buildah "${storage[@]}" bud --quiet --tag node-of-debian "$folder/node" > "$folder/base-id"

# The registry and the authorities of this machine, for `npm ci` in the image that builds.
setting() { npm config get "$1" 2>/dev/null | sed '/^\(null\|undefined\)$/d'; }
echo "registry=$(setting registry)" > "$folder/npmrc"
authorities="${NODE_EXTRA_CA_CERTS:-$(setting cafile)}"
cp "${authorities:-/etc/ssl/certs/ca-certificates.crt}" "$folder/ca.pem"
echo "cafile=/usr/local/etc/ca.pem" >> "$folder/npmrc"
buildah "${storage[@]}" bud --quiet --format docker --volume "$folder/npmrc:/usr/local/etc/npmrc:ro" --volume "$folder/ca.pem:/usr/local/etc/ca.pem:ro" \
  --build-arg BASE=localhost/node-of-debian --file deploy/container/Containerfile \
  --ignorefile deploy/container/Containerfile.containerignore --tag tributary . > "$folder/id"
echo "image: $(buildah "${storage[@]}" inspect --type image --format '{{.OCIv1.Config.User}} {{.OCIv1.Config.Entrypoint}} {{.OCIv1.Config.StopSignal}}' tributary)"

container="$(buildah "${storage[@]}" from localhost/tributary)"
place="$(buildah "${storage[@]}" mount "$container")"
du -sm "$place/opt/tributary" | sed 's/\s.*/ MB of the service and its packages/'
buildah "${storage[@]}" inspect --type image tributary > "$folder/image.json"
trap 'buildah "${storage[@]}" umount --all > /dev/null; rm -rf "$folder"' EXIT

# As compose.yaml runs it, with PostgreSQL and Prometheus: each in namespaces, in a network that has a loopback and nothing else.
for try in "unshare --net --mount --pid --fork true" "unshare --net ip link set lo up" "crun --version"; do
  said="$($try 2>&1)" || { echo "NOT RUN, only built: \`$try\` was refused: $said"; exit 77; }
done
unshare --net --mount --propagation private bash -c 'ip link set lo up && mount -t tmpfs none /sys/fs/cgroup && exec node tests/packaging/run-services.ts "$@"' run "$place" "$folder/image.json" "$folder"
echo "image ok"
