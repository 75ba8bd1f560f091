#!/bin/sh
# hosts.sh STINT CASE WORK: two ranks in network namespaces of this machine, each with its own addresses and host name, over TCP on a pair of
# virtual cards: the bits of one process. With delay and loss where the kernel has netem, or else a slow link, and loss by iptables where
# that is there. Wants root.
stint=$1 case=$2 work=$3
. "${0%/*}/common.sh"
need_mpi
skip() {
	echo "SKIPPED: $*"
	exit 77
}
[ "$(id -u)" = 0 ] || skip "namespaces want root"
command -v ip >/dev/null && command -v tc >/dev/null || skip "no ip or tc (Debian: iproute2)"
a=stint-a-$$ b=stint-b-$$
trap 'ip netns del $a 2>/dev/null; ip netns del $b 2>/dev/null' EXIT
ip netns add $a 2>/dev/null && ip netns add $b 2>/dev/null || skip "no network namespaces here"
ip link add sta$$ netns $a type veth peer name stb$$ netns $b 2>/dev/null || skip "no virtual cards (veth) here"
for end in "$a sta$$ 1" "$b stb$$ 2"; do
	# shellcheck disable=SC2086 # words
	set -- $end
	ip -n "$1" addr add "10.77.0.$3/24" dev "$2" && ip -n "$1" link set lo up && ip -n "$1" link set "$2" up || exit 1
	ip netns exec "$1" tc qdisc add dev "$2" root netem delay 1ms 500us loss 1% 2>/dev/null && echo "$1: netem, 1 ms and 1 % lost" && continue
	ip netns exec "$1" tc qdisc add dev "$2" root tbf rate 20mbit burst 10kb latency 50ms 2>/dev/null && echo "$1: no netem; 20 Mbit/s" ||
		echo "$1: neither netem nor tbf"
	ip netns exec "$1" iptables -A INPUT -i "$2" -m statistic --mode random --probability 0.01 -j DROP 2>/dev/null && echo "$1: 1 % lost" ||
		echo "$1: nothing is lost"
done
rm -rf "$work" && mkdir -p "$work" || exit 1
compile "$work/step" --optimizer adamw || exit 1

# What Open MPI takes for ssh: the host's namespace, and a name of its own.
cat >"$work/rsh" <<END
#!/bin/sh
case \$1 in
10.77.0.1) in=$a ;;
*) in=$b ;;
esac
shift
exec ip netns exec \$in unshare --uts sh -c "hostname \$in; \$*"
END
chmod +x "$work/rsh"
failed=0
"$stint" train "$work/step" $(data) --epochs 50 --checkpoint "$work/one" >"$work/one.log" 2>&1 || { cat "$work/one.log"; exit 1; }
sent() {
	ip netns exec $a cat /sys/class/net/sta$$/statistics/tx_bytes
}
before=$(sent)
# shellcheck disable=SC2046 # words
timeout 60 "$work/rsh" 10.77.0.1 mpirun --mca plm_rsh_agent "$work/rsh" --mca btl tcp,self --mca btl_tcp_if_include 10.77.0.0/24 \
	--mca oob_tcp_if_include 10.77.0.0/24 --host 10.77.0.1,10.77.0.2 -n 2 "$stint" train "$work/step" $(data) --epochs 50 --check-ranks 10 \
	--checkpoint "$work/two" >"$work/two.log" 2>&1 || { cat "$work/two.log"; echo "FAILED: two hosts"; failed=1; }
[ "$(values "$work/one")" = "$(values "$work/two")" ] || { echo "FAILED: other bits"; failed=1; }
echo "$(($(sent) - before)) bytes have left the first host"
[ $(($(sent) - before)) -gt 60000 ] || { echo "FAILED: messages went another way"; failed=1; }
[ $failed = 1 ] || rm -rf "$work"
exit $failed
