/* The programs of test_attention.c. */
#ifndef STINT_TESTS_ATTENTION_FORMS_H
#define STINT_TESTS_ATTENTION_FORMS_H

#include <stdbool.h>

struct form {
	const char *name, *text;
};

#define QKV "param q 2,5,3,4; param k 2,7,3,4; param v 2,7,3,6; "
#define HEADS                                                                                      \
	QKV "Transpose qt q perm=0,2,1,3; Transpose kt k perm=0,2,3,1; Transpose vt v "            \
	    "perm=0,2,1,3; "
#define END "Softmax p s axis=-1; MatMul y p vt"
#define SQUARE                                                                                     \
	"param q 2,3,5,4; param k 2,3,5,4; param vt 2,3,5,6; Transpose kt k perm=0,1,3,2; "        \
	"MatMul a q kt; Mul s0 a 0.5; "

static const struct form recognised[] = {
	{"the older exporter", HEADS "Mul qs qt 0.7; Mul ks kt 0.7; MatMul s qs ks; " END
				     "; Transpose z y perm=0,2,1,3; Reshape w z [2,5,18]"},
	{"the newer exporter",
		HEADS "Transpose k4 kt perm=0,1,3,2; Reshape k3 k4 [-1,7,4]; Transpose k5 k3 "
		      "perm=0,2,1; Reshape k6 k5 [2,3,4,7]; Mul qs 0.7 qt; Mul ks k6 0.7; "
		      "MatMul s qs ks; " END "; Transpose z y perm=0,2,1,3"},
	{"a factor after the product", HEADS "MatMul a qt kt; Mul s a 0.5; " END},
	{"a divisor after the product", HEADS "MatMul a qt kt; Div s a 2; " END},
	{"causal, added", SQUARE "Add s s0 causal; " END},
	{"causal, for every batch", SQUARE "Expand m causal [2,1,5,5]; Add s s0 m; " END},
	{"causal, the most negative number", SQUARE "Add s lowest s0; " END},
	{"causal, chosen", SQUARE "Where s tril s0 -inf; " END},
	{"causal, filled", SQUARE "Where s triu -1e9 s0; " END},
	{"a band", SQUARE "Add s s0 band; " END},
	{"a mask made from data", SQUARE "input c 5,5:bool; Where m c 0 -1e4; Add s s0 m; " END},
	{"a choice, added", SQUARE "Where m tril 0 -inf; Add s s0 m; " END},
	{"a bias that is learned", HEADS "param b 1,3,5,7; MatMul a qt kt; Add s a b; " END},
	{"a bias and a mask", HEADS "param b 1,3,5,7; param m 2,1,1,7; MatMul a qt kt; Add s1 a b; "
				    "Add s s1 m; " END},
	{"a bias and the diagonal",
		SQUARE "param b 3,5,5; Add s1 s0 b; Where s tril s1 -inf; " END},
	{"in half precision and back", SQUARE "Cast c s0 to=1; Softmax p0 c axis=3; Cast p p0 "
					      "to=1; Dropout d p 0.0; MatMul y d vt"},
	{"heads that share keys",
		"param q 2,5,6,4; param k 2,5,2,4; param v 2,5,2,4; Transpose qt q perm=0,2,1,3; "
		"Transpose k1 k perm=0,2,1,3; Unsqueeze k2 k1 [2]; Expand k3 k2 [2,2,3,5,4]; "
		"Reshape k4 k3 [2,6,5,4]; Transpose kt k4 perm=0,1,3,2; Transpose v1 v "
		"perm=0,2,1,3; Unsqueeze v2 v1 [2]; Expand v3 v2 [2,2,3,5,4]; Reshape vt v3 "
		"[2,6,5,4]; MatMul a qt kt; Mul s a 0.5; " END},
	{"heads that are repeated",
		"param q 2,6,5,4; param k 2,2,5,4; param v 2,2,5,4; Unsqueeze k2 k [2]; Tile k3 k2 "
		"[1,1,3,1,1]; Reshape k4 k3 [2,6,5,4]; Transpose kt k4 perm=0,1,3,2; Unsqueeze v2 "
		"v "
		"[2]; Tile v3 v2 [1,1,3,1,1]; Reshape vt v3 [2,6,5,4]; MatMul s q kt; " END},
	{"one head of keys",
		"param q 2,4,5,4; param k 2,1,5,4; param v 2,1,5,3; Expand k1 k [2,4,5,4]; Expand "
		"vt v [2,4,5,3]; Transpose kt k1 perm=0,1,3,2; MatMul s q kt; " END},
	{"batch and head in one axis",
		"param q 5,6,4; param k 7,6,4; param v 7,6,3; Transpose qt q perm=1,0,2; "
		"Transpose kt k perm=1,2,0; Transpose vt v perm=1,0,2; Mul qs qt 0.5; MatMul s qs "
		"kt; " END "; Transpose z y perm=1,0,2"},
	{"batch and head joined",
		HEADS "Reshape q3 qt [6,5,4]; Reshape k3 kt [6,4,7]; Reshape v3 vt [6,7,6]; param "
		      "b 6,1,7; MatMul a q3 k3; Add s a b; Softmax p s axis=2; MatMul y p v3"},
	{"windows", "param q 6,2,4,3; param k 6,2,4,3; param vt 6,2,4,3; param b 1,2,4,4; param m "
		    "1,3,1,4,4; Transpose kt k perm=0,1,3,2; MatMul a q kt; Add s1 a b; Reshape s2 "
		    "s1 [2,3,2,4,4]; Add s3 s2 m; Reshape s s3 [6,2,4,4]; " END},
	{"a factor for each head", HEADS "param h 3,1,1; MatMul a qt kt; Mul s h a; " END},
	{"a soft cap", HEADS "param b 5,7; MatMul a qt kt; Mul a1 a 0.5; Div t a1 1.5; Tanh u t; "
			     "Mul c u 1.5; Add s c b; " END},
	{"keys stored as columns",
		"param q 2,3,5,4; param kt 2,3,4,7; param vt 2,3,7,6; MatMul s q "
		"kt; " END},
	{"one matrix each", "param q 5,4; param k 7,4; param vt 7,3; param b 5,7; Transpose kt k; "
			    "MatMul a q kt; Add s a b; " END},
	{"two batch axes",
		"param q 2,3,2,5,4; param k 2,3,2,5,4; param vt 2,3,2,5,3; param b "
		"3,1,5,5; Transpose kt k perm=0,1,2,4,3; MatMul a q kt; Add s a b; " END},
	{"probabilities thinned out",
		SQUARE "Softmax p0 s0 axis=-1; Dropout p p0 0.5 yes; MatMul y p vt"},
	{"thinned out of 7 keys", HEADS "param b 5,7; MatMul a qt kt; Add s a b; Softmax p0 s; "
					"Dropout p p0 0.3 yes; MatMul y p vt"},
};

#define SLICES "Slice q3 x [0] [12] [2]; Slice k3 x [12] [24] [2]; Slice v3 x [24] [42] [2]; "
#define SLICED                                                                                     \
	"Reshape q4 q3 [2,5,3,4]; Reshape k4 k3 [2,5,3,4]; Reshape v4 v3 [2,5,3,6]; Transpose qt " \
	"q4 perm=0,2,1,3; Transpose kt k4 perm=0,2,3,1; Transpose vt v4 perm=0,2,1,3; "

/* Queries, keys and values are parts of one tensor. */
static const struct form parts[] = {
	{"parts of a row", "param x 2,5,42; " SLICES SLICED "MatMul a qt kt; Mul s a 0.5; " END
			   "; Transpose z y perm=0,2,1,3"},
	{"parts of a row, causal",
		"param x 2,5,42; " SLICES SLICED "MatMul a qt kt; Add s a causal; " END},
	{"as multi-head attention makes them",
		"param x 5,2,36; Reshape x1 x [5,2,3,12]; Transpose x2 x1 perm=2,0,1,3; Slice q1 "
		"x2 [0] [1] [0]; Slice k1 x2 [1] [2] [0]; Slice v1 x2 [2] [3] [0]; Reshape q2 q1 "
		"[5,6,4]; Reshape k2 k1 [5,6,4]; Reshape v2 v1 [5,6,4]; Transpose q3 q2 "
		"perm=1,0,2; Transpose k3 k2 perm=1,0,2; Transpose v3 v2 perm=1,0,2; Reshape qt q3 "
		"[2,3,5,4]; Reshape k4 k3 [2,3,5,4]; Reshape vt v3 [2,3,5,4]; Transpose kt k4 "
		"perm=0,1,3,2; Mul qs qt 0.5; MatMul s qs kt; " END},
	{"parts of each head, thinned out",
		"param x 2,5,3,3,4; Slice q1 x [0] [1] [3]; Slice k1 x [1] [2] [3]; Slice v1 x [2] "
		"[3] [3]; Reshape q q1 [2,5,3,4]; Reshape k k1 [2,5,3,4]; Reshape v v1 [2,5,3,4]; "
		"Transpose qt q perm=0,2,1,3; Transpose kt k perm=0,2,3,1; Transpose vt v "
		"perm=0,2,1,3; MatMul a qt kt; Add s a band; Softmax p0 s; Dropout p p0 0.5 yes; "
		"MatMul y p vt"},
	{"parts of a row, heads that share keys",
		"param x 2,5,40; param b 6,5,5; Slice q3 x [0] [24] [2]; Slice r x [24] [40] [2]; "
		"Split k3,v3 r axis=2; "
		"Reshape q4 q3 "
		"[2,5,6,4]; Reshape k4 k3 [2,5,2,1,4]; Reshape v4 v3 [2,5,2,1,4]; Expand k5 k4 "
		"[2,5,2,3,4]; Expand v5 v4 [2,5,2,3,4]; Reshape k6 k5 [2,5,6,4]; Reshape v6 v5 "
		"[2,5,6,4]; Transpose qt q4 perm=0,2,1,3; Transpose kt k6 perm=0,2,3,1; Transpose "
		"vt v6 perm=0,2,1,3; MatMul a qt kt; Add s a b; " END},
};

/* Parts that are not all of the tensor, or the same. */
static const struct form not_parts[] = {
	{"more in the row", "param x 2,5,43; " SLICES SLICED "MatMul s qt kt; " END},
	{"keys that are the queries",
		"param x 2,5,36; Slice q3 x [0] [12] [2]; Slice k3 x [0] [12] [2]; Slice v3 x [12] "
		"[24] [2]; Reshape q4 q3 [2,5,3,4]; Reshape k4 k3 [2,5,3,4]; Reshape v4 v3 "
		"[2,5,3,4]; Transpose qt q4 perm=0,2,1,3; Transpose kt k4 perm=0,2,3,1; Transpose "
		"vt v4 perm=0,2,1,3; MatMul s qt kt; " END},
};

/* Some rows have no key: the outputs are compared, gradients of NaN are not. */
static const struct form without_keys[] = {
	{"a row without keys", SQUARE "Where s holes s0 -inf; " END},
	{"rows without keys are zeros",
		SQUARE "Where s holes s0 -inf; Softmax p0 s axis=-1; IsNaN n p0; "
		       "Where p n 0 p0; MatMul y p vt"},
	{"a mask that is data", SQUARE "input c 2,1,5,5:bool; Where s c s0 -inf; Softmax p0 s; "
				       "IsNaN n p0; Where p n 0 p0; MatMul y p vt"},
};

static const struct form other[] = {
	{"a bias and a choice", HEADS "param b 1,3,5,7; input c 2,1,1,7:bool; MatMul a qt kt; "
				      "Add s1 a b; Where s c s1 -1e4; " END},
	{"a softmax over queries", SQUARE "Softmax p s0 axis=2; MatMul y p vt"},
	{"a factor after the mask", SQUARE "param b 5,5; Add s1 s0 b; Mul s s1 0.5; " END},
	{"values that broadcast",
		"param q 2,3,5,4; param kt 2,3,4,5; param vt 5,6; MatMul s q kt; " END},
	{"a mask that broadcasts the scores",
		"param q 1,3,5,4; param kt 1,3,4,5; param vt 2,3,5,6; "
		"param b 2,1,5,5; MatMul a q kt; Add s a b; " END},
	{"a number that is no mask", SQUARE "Where s tril s0 -5; " END},
	{"rows of a low number", SQUARE "input c 5,5:bool; Where s c s0 -1e9; " END},
	{"another cap", HEADS "MatMul a qt kt; Div t a 1.5; Tanh u t; Mul s u 2; " END},
	{"no softmax", SQUARE "MatMul y s0 vt"},
};

/* Rotary embeddings. */
static const struct form rotary[] = {
	{"halves, sliced", "param q 2,3,5,4; param c 5,4; param s 5,4; Slice a q [0] [2] [3]; "
			   "Slice b q [2] [99] [3]; Neg n b; Concat t n a axis=-1; Mul u t s; Mul "
			   "v q c; Add y v u"},
	{"halves, split, of what was transposed",
		"param x 2,5,3,4; param c 1,1,5,4; param s 2,1,5,4; Transpose q x perm=0,2,1,3; "
		"Split a,b q axis=3; Neg n b; Concat t n a axis=3; Mul u s t; Mul v c q; Add y u "
		"v"},
	{"of heads in other order", "param x 2,5,3,4; param c 3,5,4; param s 5,4; Transpose q x "
				    "perm=0,2,1,3; Split a,b q axis=3; Neg n b; Concat t n a "
				    "axis=3; Mul u s t; Mul v c q; Add y u v"},
	{"of three axes", "param q 3,5,4; param c 5,4; param s 4; Split a,b q axis=-1; Neg n b; "
			  "Concat t n a axis=-1; Mul u s t; Mul v c q; Add y u v"},
};

static const struct form not_rotary[] = {
	{"halves the other way", "param q 2,3,5,4; param c 5,4; param s 5,4; Split a,b q axis=-1; "
				 "Neg n a; Concat t n b axis=-1; Mul u s t; Mul v c q; Add y u v"},
	{"another sign", "param q 2,3,5,4; param c 5,4; param s 5,4; Split a,b q axis=-1; Neg n a; "
			 "Concat t b n axis=-1; Mul u s t; Mul v c q; Add y u v"},
	{"another tensor", "param q 2,3,5,4; param p 2,3,5,4; param c 5,4; param s 5,4; Split a,b "
			   "p axis=-1; Neg n b; Concat t n a axis=-1; Mul u s t; Mul v c q; Add y "
			   "u v"},
	{"one angle for a row", "param q 2,3,5,4; param c 5,1; param s 5,4; Split a,b q axis=-1; "
				"Neg n b; Concat t n a axis=-1; Mul u s t; Mul v c q; Add y u v"},
};

/* Rolls and windows. */
#define ROLL "param x 2,6,4,3; Slice a x [1] [6] [1]; Slice b x [0] [1] [1]; Concat c a b axis=1; "
#define ROLL_TWICE ROLL "Slice d c [3] [4] [2]; Slice e c [0] [3] [2]; Concat f d e axis=2; "

static const struct form roll[] = {
	{"along one axis", ROLL "Mul y c c"},
	{"along two axes", ROLL_TWICE "Mul y f f"},
	{"and windows",
		ROLL_TWICE "Reshape g f [2,3,2,2,2,3]; Transpose h g perm=0,1,3,2,4,5; Mul y h h"},
	{"and windows that turn an axis",
		ROLL_TWICE "Reshape g f [2,3,2,2,2,3]; Transpose h g perm=5,3,0,2,1,4; Mul y h h"},
	{"back from windows",
		"param w 2,3,2,2,2,3; Transpose h w perm=0,1,3,2,4,5; Reshape x h [2,6,4,3]; Slice "
		"z x [0] [6] [1]; Slice a z [5] [6] [1]; Slice b z [0] [5] [1]; Concat c a b "
		"axis=1; Slice d c [1] [4] [2]; Slice e c [0] [1] [2]; Concat f d e axis=2; Mul y "
		"f "
		"f"},
	{"and back",
		ROLL_TWICE "Reshape g f [2,3,2,2,2,3]; Transpose h g perm=0,1,3,2,4,5; Transpose i "
			   "h perm=0,1,3,2,4,5; Reshape j i [2,6,4,3]; Slice k j [1] [4] [2]; "
			   "Slice l j [0] [1] [2]; Concat m k l axis=2; Mul y m x"},
	{"what was read before too", ROLL_TWICE "Mul z f f; Add y z c"},
};

static const struct form phases[] = {
	{"every second place along two axes",
		"param x 2,6,4,3; Slice a x [0] [6] [1] [2]; Slice b a [0] [4] [2] [2]; Slice c x "
		"[1] [6] [1] [2]; Slice d c [0] [4] [2] [2]; Slice e a [1] [4] [2] [2]; Slice f c "
		"[1] [4] [2] [2]; Concat y0 b d e f axis=3; Mul y y0 y0"},
	{"the last axis fastest",
		"param x 2,3,6,4; Slice a x [0] [6] [2] [3]; Slice b a [0] [4] [3] [2]; Slice c x "
		"[0] [6] [2] [3]; Slice d c [1] [4] [3] [2]; Slice e x [1] [6] [2] [3]; Slice f e "
		"[0] [4] [3] [2]; Slice g e [1] [4] [3] [2]; Slice h x [2] [6] [2] [3]; Slice i h "
		"[0] [4] [3] [2]; Slice j h [1] [4] [3] [2]; Concat y0 b d f g i j axis=1; Mul y "
		"y0 "
		"y0"},
};

static const struct form not_roll[] = {
	{"joined as it was", "param x 2,6; Slice a x [2] [6] [1]; Slice b x [0] [2] [1]; Concat c "
			     "b a axis=1; Mul "
			     "y c c"},
	{"parts of two tensors", "param x 2,6; param z 2,6; Slice a x [2] [6] [1]; Slice b z [0] "
				 "[2] [1]; Concat c a b "
				 "axis=1; Mul y c c"},
	{"with a gap", "param x 2,6; Slice a x [3] [6] [1]; Slice b x [0] [2] [1]; Concat c a b "
		       "axis=1; Mul "
		       "y c c"},
	{"twice the same", "param x 2,6; Slice a x [2] [6] [1]; Concat c a a axis=1; Mul y c c"},
	{"cut along another axis too",
		"param x 3,6; Slice z x [1] [3] [0]; Slice a z [2] [6] [1]; Slice b z [0] [2] [1]; "
		"Concat c b a axis=1; Mul y c c"},
	{"phases in an order that no axis has",
		"param x 2,8; Slice a x [0] [8] [1] [4]; Slice b x [2] [8] [1] [4]; Slice c x [1] "
		"[8] [1] [4]; Slice d x [3] [8] [1] [4]; Concat e a b c d axis=1; Mul y e e"},
};

static const struct section {
	const char *op; /* that is found */
	const struct form *form;
	int n;
	bool found, gradients;
	const char *gradient; /* that is found too, once there are gradients; NULL: any */
} sections[] = {
#define SECTION(list, op, ...)                                                                     \
	{                                                                                          \
		op, list, sizeof list / sizeof *list, __VA_ARGS__                                  \
	}
	SECTION(recognised, "stint.Attention", true, true, NULL),
	SECTION(parts, "stint.Attention", true, true, "stint.AttentionGradParts"),
	SECTION(not_parts, "stint.Attention", true, true, "stint.AttentionGrad"),
	SECTION(without_keys, "stint.Attention", true, false, NULL),
	SECTION(other, "stint.Attention", false, false, NULL),
	SECTION(rotary, "stint.Rotary", true, true, NULL),
	SECTION(not_rotary, "stint.Rotary", false, false, NULL),
	SECTION(roll, "stint.Roll", true, true, "stint.Roll"),
	SECTION(phases, "Transpose", true, true, NULL),
	SECTION(not_roll, "stint.Roll", false, false, NULL),
};

#endif
