# Graph files that are wrong: each refused with exit 3 and a message that names the file and the op or
# tensor; odd but right ones planned.
. "$(dirname "$0")/lib.sh"

# tensor ID KIND BYTES, op ID PHASE INPUTS OUTPUTS [MORE], graph TENSORS OPS [MORE]
tensor() { printf '{"id":%s,"name":"t%s","kind":"%s","bytes":%s}' "$1" "$1" "$2" "$3"; }
op()
{
	printf '{"id":%s,"name":"o%s","phase":"%s","inputs":%s,"outputs":%s' "$1" "$1" "$2" "$3" "$4"
	printf ',"cost":1,"workspace":0,"inplace":[],"recomputable":%s}' "${5:-true}"
}
graph()
{
	printf '{"format":"stint-graph-1","name":"g","tensors":[%s],"ops":[%s],"keep":%s}\n' \
		"$1" "$2" "${3:-[]}" >g.json
}
refused()
{
	rm -f plan.json
	expect 3 stint plan --graph g.json --budget 1000000 -o plan.json
	said g.json "$@"
	absent plan.json
}
planned()
{
	expect 0 stint plan --graph g.json --budget 100% -o plan.json
	expect 0 stint check --graph g.json plan.json
}
# edited SED-EXPRESSION WORD ...: the good graph, changed
edited()
{
	good
	cp g.json before.json
	sed "$1" before.json >g.json
	differ before.json g.json
	shift
	refused "$@"
}

x=$(tensor 0 input 64) w=$(tensor 3 parameter 64)
good()
{
	graph "$x,$(tensor 1 activation 128),$(tensor 2 output 64),$w,$(tensor 4 output 64)" \
		"$(op 7 forward '[0]' '[1]'),$(op 8 forward '[1,3]' '[2]'),$(op 9 update '[3,2]' '[4]' false |
			sed 's/"inplace":\[\]/"inplace":[[4,3]]/')" '[2,4]'
}
good
planned

# a loop that is one op: o7 has 3 places, of which two are taken, and reads 64 bytes
loop='"loop":{"keeps":"places","turns":5,"places":3,"again":2,"turn_bytes":0,"kept_bytes":64,"at":[2,4]}'
with_loop()
{
	good
	sed "0,/\"recomputable\":true/s//&,$loop/" g.json >with.json
	differ g.json with.json
	sed "$1" with.json >g.json
	[ "$1" = p ] || differ with.json g.json
}
with_loop 's/"keeps"/"keeps"/;s/"turns":5/"turns":6/'
planned
grep -q '"loops":\[' plan.json && grep -q '"op":7,"keeps":"places","turns":6,"places":3' plan.json || fail "no loops in plan.json"
sed 's/"turns":6/"turns":7/' plan.json >other.json
expect 3 stint check --graph g.json other.json
said other.json "loop 0: the graph says another of op 7"
loop_refused() # SED-EXPRESSION WORD...
{
	with_loop "$1"
	shift
	refused o7 "$@"
}
loop_refused 's/"loop":{[^}]*}/"loop":5/' "\"loop\" is not an object"
loop_refused 's/"keeps":"places"/"keeps":"most"/' "unknown keeps"
loop_refused 's/"again":2,//' missing
loop_refused 's/"at":\[2,4\]/"at":[2,"4"]/' "is not a list of turns"
loop_refused 's/"again":2/"again":-2/' 'cannot be such a "loop"' "a number of its loop is negative"
loop_refused 's/"turns":5/"turns":0/' "has no turns"
loop_refused 's/"places":3/"places":9/' "in other places than its turns have"
loop_refused 's/"turn_bytes":0/"turn_bytes":8/' "needs more than its workspace"
loop_refused 's/"kept_bytes":64/"kept_bytes":65/' "more is kept of its loop than it reads"
loop_refused 's/\[2,4\]/[4,2]/' "not in order"

# sizes and costs
edited 's/"bytes":128/"bytes":9223372036854775807/' t1 "add up"
edited 's/"bytes":128/"bytes":1152921504606846976/' t1 "add up"
edited 's/"bytes":128/"bytes":99999999999999999999/' t1 "too big"
edited 's/"bytes":128/"bytes":-1/' t1 "-1 bytes"
edited 's/"bytes":128/"bytes":1.5/' t1 "whole number"
edited 's/"bytes":128/"bytes":1e3/' t1 "whole number"
edited 's/"bytes":128/"bytes":"128"/' t1 "whole number"
edited 's/"bytes":128/"bytes":null/' t1 "whole number"
edited 's/,"bytes":128//' t1 missing
edited '0,/"workspace":0/s//"workspace":-5/' o7 "workspace"
edited '0,/"workspace":0/s//"workspace":4611686018427387904/' o7 "workspace"
edited '0,/"workspace":0/s//"workspace":"big"/' o7 "whole number"
edited '0,/"workspace":0/s//"workspace":1e30/' o7 "whole number"
edited '0,/"cost":1/s//"cost":-1/' o7 "cost is -1"
edited '0,/"cost":1/s//"cost":NaN/' o7 "NaN"
edited '0,/"cost":1/s//"cost":nan/' o7 "nan"
edited '0,/"cost":1/s//"cost":Infinity/' o7 "Infinity"
edited '0,/"cost":1/s//"cost":-Infinity/' o7 "JSON"
edited '0,/"cost":1/s//"cost":1e999/' o7 "overflow"
edited '0,/"cost":1/s//"cost":1e201/' o7 "cost is 1e+201"
edited '0,/"cost":1/s//"cost":true/' o7 "not a number"
edited '0,/"cost":1,/s///' o7 missing

# who makes what, and when
graph "$x,$(tensor 1 activation 8),$(tensor 2 activation 8)" \
	"$(op 7 forward '[2]' '[1]'),$(op 8 forward '[1]' '[2]')"
refused o7 "before the op that produces it" cycle
graph "$x,$(tensor 1 activation 8)" "$(op 7 forward '[1]' '[1]')"
refused o7 "both input and output"
edited 's/"outputs":\[1\]/"outputs":[]/' t1 "no op produces"
edited 's/"outputs":\[2\]/"outputs":[2,1]/' o8 t1 "another op"
edited 's/"outputs":\[1\]/"outputs":[1,1]/' o7 t1 twice
edited 's/"outputs":\[1\]/"outputs":[1,0]/' o7 t0
edited 's/"id":3,/"id":1,/' "tensor id 1" twice
edited 's/"id":8,/"id":7,/' o8 "op id 7" twice
edited 's/"inputs":\[1,3\]/"inputs":[1,99]/' o8 "tensor 99"
edited 's/"inputs":\[1,3\]/"inputs":[1,-1]/' o8 "tensor -1"
edited 's/"inputs":\[1,3\]/"inputs":[1,"t3"]/' o8 ids
edited 's/"inputs":\[1,3\]/"inputs":{"0":1}/' o8 "not a list"
edited 's/"keep":\[2,4\]/"keep":[2,40]/' "tensor 40"
edited 's/"keep":\[2,4\]/"keep":[2,4.0]/' keep
edited 's/"keep":\[2,4\]/"keep":2/' keep
edited 's/"keep":\[2,4\]/"keep":[2,4,3]/' t3 "to be kept"

# in place
edited 's/\[\[4,3\]\]/[[4,33]]/' o9 "tensor 33"
edited 's/\[\[4,3\]\]/[[4,0]]/' o9 "not an output and an input"
edited 's/\[\[4,3\]\]/[[3,4]]/' o9 "not an output and an input"
edited 's/\[\[4,3\]\]/[4,3]/' o9 "pair 0"
edited 's/\[\[4,3\]\]/[[4,3,1]]/' o9 "pair 0"
edited 's/\[\[4,3\]\]/{"4":3}/' o9 "not a list"
edited 's/"id":4,"name":"t4","kind":"output","bytes":64/"id":4,"name":"t4","kind":"output","bytes":65/' \
	o9 "larger"
edited 's/"phase":"update"/"phase":"backward"/' o9 "overwrites"
# an update may overwrite what is not resident: a pair like any other
good
sed -i 's/\[\[4,3\]\]/[[4,2]]/; s/"keep":\[2,4\]/"keep":[4]/' g.json
planned

# words and kinds of values
edited 's/"kind":"parameter"/"kind":"weight"/' t3 "weight"
edited 's/"kind":"parameter"/"kind":3/' t3 kind
edited 's/"phase":"update"/"phase":"Update"/' o9 Update
edited 's/,"phase":"update"//' o9 phase
edited 's/"recomputable":false/"recomputable":0/' o9 recomputable
edited 's/"name":"t1"/"name":["t1"]/' "name"
edited 's/"id":1,/"id":"1",/' t1 id
edited 's/"id":1,/"id":1.0,/' t1 id
edited 's/"id":1,//' t1 id
edited 's/"recomputable":false/"recomputable":false,"choices":[]/' o9 choices
edited 's/"recomputable":false/"recomputable":false,"choices":{"cost":1}/' o9 choices
edited 's/"recomputable":false/"recomputable":false,"choices":[7]/' o9 "choice 0"
edited 's/"recomputable":false/"recomputable":false,"choices":[{"cost":1},{}]/' o9 cost
edited 's/stint-graph-1/stint-graph-2/' stint-graph-1
edited 's/"format"/"Format"/' stint-graph-1
edited 's/"ops":\[.*\],"keep"/"keep"/' ops missing
edited 's/"ops":\[.*\],"keep"/"ops":[],"keep"/' "no ops"
edited 's/"ops":\[/"ops":[7,null,/' "not an object"
edited 's/"tensors":\[/"tensors":[[],/' "not an object"
edited 's/"id":1,/"id":1,"id":1,/' duplicate

# not even JSON
good
size=$(wc -c <g.json)
cp g.json whole.json
for n in 0 1 10 100 $((size / 2)) $((size - 2)); do
	head -c "$n" whole.json >g.json
	refused JSON
done
cat whole.json whole.json >g.json
refused JSON
for nest in '[' '{"a":'; do
	awk -v s="$nest" 'BEGIN {for (i = 0; i < 200000; i++) printf "%s", s}' >g.json
	refused depth
done
awk 'BEGIN {printf "{\"format\":\"stint-graph-1\",\"tensors\":"; for (i = 0; i < 5000; i++) printf "["}' >g.json
refused depth
edited 's/"name":"t1"/"name":"t\xff1"/' "byte 0xff"
edited 's/"name":"t1"/"name":"t\xc0\x801"/' "byte 0xc0"
edited 's/"name":"t1"/"name":"t\\u00001"/' "u0000"
edited 's/"name":"t1"/"name":"t\\ud8001"/' "ud800"
edited 's/"name":"t1"/"name":"t\x001"/' "JSON"
head -c 1000 /dev/zero >g.json
refused JSON
printf '\377\376{\000}\000' >g.json
refused JSON
for text in null 7 '"g"' '[]' '{}'; do
	echo "$text" >g.json
	refused
done
# every fault of a file, not just the first
good
sed -i 's/"bytes":128/"bytes":-1/; s/"inputs":\[1,3\]/"inputs":[1,99]/; s/"kind":"parameter"/"kind":"p"/' g.json
refused t1 o8 "tensor 99" t3

# odd, but right
good
sed -i 's/"id":1,/"id":9223372036854775807,/; s/\[1\]/[9223372036854775807]/; s/\[1,3\]/[9223372036854775807,3]/' g.json
sed -i 's/"id":7,/"id":-9223372036854775808,/' g.json
planned
told "arena"
graph "" '{"id":0,"phase":"forward","inputs":[],"outputs":[],"cost":0}'
planned
graph "$(tensor 1 activation 0)" "$(op 7 forward '[]' '[1]')" '[1]'
planned
good
sed -i 's/"inputs":\[1,3\]/"inputs":[1,3,1,1]/; s/"keep":\[2,4\]/"keep":[2,4,2]/' g.json
planned
good
sed -i 's/"bytes":128/"bytes":288230376151711744/' g.json
planned
good
sed -i '0,/"cost":1/s//"cost":1e200/; s/"name":"t1"/"name":""/' g.json
planned

# plans: the same, against the good graph
good
planned
cp plan.json p.json
plan_refused()
{
	sed "$1" p.json >plan.json
	differ p.json plan.json
	shift
	expect 3 stint check --graph g.json plan.json
	said plan.json "$@"
}
plan_refused 's/"offset": *[0-9]*/"offset":9223372036854775807/' offset
plan_refused 's/"offset": *[0-9]*/"offset":-64/' offset
plan_refused 's/"offset": *[0-9]*/"offset":1e3/' offset
plan_refused 's/"bytes": *[0-9]*/"bytes":9223372036854775807/' bytes
plan_refused 's/"first_step": *[0-9]*/"first_step":-1/'
plan_refused 's/"last_step": *[0-9]*/"last_step":99999999999/' last_step
plan_refused 's/"arena_bytes": *[0-9]*/"arena_bytes":null/' arena_bytes
plan_refused 's/"total": *[0-9.]*/"total":NaN/' NaN
plan_refused 's/"total": *[0-9.]*/"total":1e999/' JSON
plan_refused 's/"lower_bound": *[0-9.]*/"lower_bound":-1/' bound
plan_refused 's/"lower_bound": *[0-9.]*/"lower_bound":1e300/' bound
plan_refused 's/"steps": *\[/"steps":[7,/' "step 0"
plan_refused 's/"buffers": *\[/"buffers":[[],/' "buffer 0"
plan_refused 's/"op": *8/"op":88/' "step"
plan_refused 's/"feasible"//; s/"graph": *"g"/"graph":7/' graph
for n in 0 1 40 200; do
	head -c "$n" p.json >plan.json
	expect 3 stint check --graph g.json plan.json
	said plan.json JSON
done
finished
