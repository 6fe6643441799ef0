#!/usr/bin/env bash
# Installs what the tests start besides Python, where it is missing and apt-get can: the binaries of PostgreSQL, and Chromium.
# Never fails: tests that miss something are left out and say so at the end, unless DELTASPACE_TEST_COMPLETE is 1.
set -u
has_postgres() {
    command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1
}
missing=()
has_postgres || missing+=(postgresql)
command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null ||
    missing+=(chromium)
[ ${#missing[@]} -eq 0 ] && exit 0
command -v apt-get >/dev/null || exit 0
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    sudo -n true 2>/dev/null || exit 0
    as_root=(sudo -n)
fi
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq && "${as_root[@]}" apt-get install -y -qq "${missing[@]}" >/dev/null
exit 0
