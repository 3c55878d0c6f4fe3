#!/usr/bin/env bash
# Runs an MPI program on three hosts that are network namespaces of this machine, each with an
# address, a name and a wire to a switch of its own: ci/hosts.sh RANKS-PER-HOST PROGRAM ARGUMENTS...
# Nothing of the machine's own network is touched, and nothing is left behind. Needs root; where
# namespaces are not allowed it says so and ends with exit code 77.
set -euo pipefail

usage="ci/hosts.sh RANKS-PER-HOST PROGRAM ARGUMENTS..."
per_host=${1:?$usage}
shift
: "${1:?$usage}"
prefix=emb$$
hosts=(a b c)
net=10.117.43
agent=$(mktemp)

skip() {
    echo "hosts.sh: skipped: $1" >&2
    exit 77
}

clean() {
    set +e
    for name in "${hosts[@]}" switch; do
        # Only what was started in the namespace is in it.
        for pid in $(ip netns pids "$prefix-$name" 2>/dev/null); do kill -9 "$pid" 2>/dev/null; done
        ip netns delete "$prefix-$name" 2>/dev/null
        rm -rf "/etc/netns/$prefix-$name" "/tmp/ompi.$prefix-$name.$(id -u)"
    done
    rmdir /etc/netns 2>/dev/null
    rm -f "$agent"
}

command -v mpirun >/dev/null || skip "no mpirun: install openmpi-bin"
command -v ip >/dev/null || skip "no ip: install iproute2"
[[ $(id -u) == 0 ]] || skip "network namespaces need root"
trap clean EXIT
trap 'exit 130' INT TERM
ip netns add "$prefix-switch" 2>/dev/null || skip "this system allows no network namespaces"
unshare --uts true 2>/dev/null || skip "this system allows no names of their own for processes"

inside() { ip netns exec "$prefix-$1" "${@:2}"; }
inside switch ip link add switch type bridge 2>/dev/null || skip "this kernel has no bridges"
inside switch ip link set switch up
number=0
list=
for host in "${hosts[@]}"; do
    number=$((number + 1))
    ip netns add "$prefix-$host"
    ip link add eth0 netns "$prefix-$host" type veth peer name "port$number" netns "$prefix-switch"
    inside switch ip link set "port$number" master switch up
    inside "$host" ip address add "$net.$number/24" dev eth0
    inside "$host" ip link set eth0 up
    inside "$host" ip link set lo up
    list+="${list:+,}$prefix-$host:$per_host"
    # `ip netns exec` puts these in the place of /etc/hosts.
    mkdir -p "/etc/netns/$prefix-$host"
    {
        echo "127.0.0.1 localhost"
        for at in 1 2 3; do echo "$net.$at $prefix-${hosts[at - 1]}"; done
    } >"/etc/netns/$prefix-$host/hosts"
done

# What MPI calls in the place of ssh: a host, and a command line for its shell.
cat >"$agent" <<'END'
#!/bin/sh
host=$1
shift
exec ip netns exec "$host" unshare --uts sh -c 'hostname "$0" && exec sh -c "$1"' "$host" "$*"
END
chmod +x "$agent"

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
inside a unshare --uts sh -c 'hostname "$0" && exec "$@"' "$prefix-a" \
    mpirun --host "$list" -n $((3 * per_host)) --oversubscribe --bind-to none \
    --mca plm_rsh_agent "$agent" --mca btl self,vader,tcp \
    --mca btl_tcp_if_include "$net.0/24" --mca oob_tcp_if_include "$net.0/24" "$@"
