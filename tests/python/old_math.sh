# tools/old_math.py: a library that wants functions of glibc 2.29 wants their first versions afterwards, and computes the same; what 2.28
# does not have is refused, and left as it is.
. "$(dirname "$0")/common.sh"
python_with struct
fail() { echo "FAILED: $*"; exit 1; }
cat >f.c <<'END'
#include <math.h>
double f(double x);
double f(double x) { return exp(x) + exp2(x) + log(x) + log2(x) + pow(x, 1.1) + sin(x); }
END
cat >main.c <<'END'
#include <stdio.h>
double f(double x);
int main(void)
{
	for (int i = 1; i < 400; i++)
		printf("%a\n", f(i * 0.37));
	return 0;
}
END
printf '#define _GNU_SOURCE\n#include <sched.h>\nint g(void);\nint g(void) { return getcpu(0, 0); }\n' >g.c
cc -O1 -fno-builtin -shared -fPIC -o libf.so f.c -lm && cc -shared -fPIC -o libg.so g.c && cc -o main main.c ./libf.so || fail "cc"
wanted() { readelf -V "$1" | grep -c 'Name: GLIBC_2[.]29 '; }
[ "$(wanted libf.so)" = 1 ] && [ "$(wanted libg.so)" = 1 ] || { echo "skipped: this glibc is too old, or has nothing of 2.29"; exit 77; }
./main >before
"$python" "$SOURCE/tools/old_math.py" libf.so || fail "it is not changed"
[ "$(wanted libf.so)" = 0 ] || fail "it still wants glibc 2.29"
./main >after || fail "it does not run any more"
cmp before after || fail "it computes otherwise"
cp libg.so g_before
"$python" "$SOURCE/tools/old_math.py" libg.so 2>err && fail "getcpu is not of 2.28"
grep -q "libg.so: wants getcpu of GLIBC_2.29" err || { cat err; fail "not told"; }
cmp libg.so g_before || fail "changed all the same"
