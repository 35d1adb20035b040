#!/usr/bin/env bash
# Builds deploy/container/Containerfile without a daemon and without a registry of images, on a base that is made here of Debian
# packages and of this project's own Node, and tries it: as root, with buildah and mmdebstrap, in about three minutes. What it
# makes is in a folder that goes at the end. Prints one line `image ok` when all is well.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder="$(mktemp -d)"
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
# As an orchestrator runs it: another user, nothing writable but its volume and /tmp.
mount --bind "$place" "$place" && mount -o remount,ro,bind "$place"
mkdir "$folder/data" && chown 10001:10001 "$folder/data"
mount --bind "$folder/data" "$place/var/lib/tributary"
mount -t tmpfs none "$place/tmp"
mount -t proc none "$place/proc" && mount --bind /dev "$place/dev"
unmount() {
  kill "${service:-}" 2> /dev/null || true
  umount "$place/dev" "$place/proc" "$place/tmp" "$place/var/lib/tributary" "$place" || true
  buildah "${storage[@]}" umount --all > /dev/null || true
}
trap 'unmount; rm -rf "$folder"' EXIT
environment=(NODE_ENV=production TRIBUTARY_HOST=0.0.0.0 TRIBUTARY_PORT=18080 TRIBUTARY_OPERATOR_PORT=off TRIBUTARY_LOG_FORMAT=json
  TRIBUTARY_DATA_DIR=/var/lib/tributary TRIBUTARY_CACHE_DIR=/var/lib/tributary/cache
  TRIBUTARY_DEPLOYMENT_URL=http://127.0.0.1:9 TRIBUTARY_DEPLOYMENT_MODEL=none PATH=/usr/local/bin:/usr/bin:/bin)
inside=(chroot --userspec=10001:10001 "$place" env -i "${environment[@]}")
refused="$(chroot "$place" touch /x 2>&1 || true)"
[[ "$refused" == *'Read-only file system'* ]] || { echo "the file system is not read-only: $refused"; exit 1; }
"${inside[@]}" node /opt/tributary/dist/cli/tributary.cjs serve > "$folder/log" 2>&1 &
service=$!
for _ in $(seq 100); do
  "${inside[@]}" node /opt/tributary/dist/cli/tributary.cjs health --ready > /dev/null 2>&1 && break
  kill -0 "$service" || { cat "$folder/log"; exit 1; }
done
"${inside[@]}" node /opt/tributary/dist/cli/tributary.cjs health --ready
"${inside[@]}" node /opt/tributary/dist/cli/tributary.cjs account list
kill -TERM "$service"
wait "$service"
grep -q '"event":"stopped"' "$folder/log"
echo "image ok"
