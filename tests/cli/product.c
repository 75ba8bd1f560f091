/* A program of someone else's that links the compiled step: what it is told about bad data. */
#include <stdio.h>
#include <string.h>

#include "stint_step.h"

#define CHECK(x)                                                                                   \
	do {                                                                                       \
		if (!(x)) {                                                                        \
			fprintf(stderr, "line %d: %s; message: %s\n", __LINE__, #x,                \
				s ? stint_message(s) : "");                                        \
			return 1;                                                                  \
		}                                                                                  \
	} while (0)

int main(void)
{
	stint_step *s = NULL;
	float before[15], after[15];
	int64_t i[4] = {0, 1, 2, 4}, label[4] = {0, 1, 2, 0};
	const int64_t bad[] = {5, -6, INT64_MAX, INT64_MIN};
	CHECK(stint_init(&s, &stint_model_g, NULL, 0) == STINT_OK);
	CHECK(stint_load(s, "weights.safetensors") == STINT_OK);
	CHECK(stint_load(s, "none.safetensors") == STINT_BAD_FILE && *stint_message(s));
	CHECK(stint_set(s, "none", i, sizeof i) == STINT_BAD_DATA && *stint_message(s));
	CHECK(stint_set(s, "i", i, 8) == STINT_BAD_DATA && strstr(stint_message(s), "i"));
	CHECK(stint_set(s, "i", i, sizeof i) == STINT_OK);
	CHECK(stint_set(s, "target", label, sizeof label) == STINT_OK);
	CHECK(stint_train(s, 0.1) == STINT_OK && stint_loss(s) > 0);
	CHECK(stint_eval(s, 0) == STINT_OK);
	CHECK(stint_get(s, "table", before, sizeof before) == STINT_OK);
	for (int k = 0; k < 4; k++) { /* the label's turn, then the index's */
		label[2] = bad[k];
		CHECK(stint_set(s, "target", label, sizeof label) == STINT_OK);
		CHECK(stint_train(s, 0.1) == STINT_BAD_DATA);
		CHECK(strstr(stint_message(s), "out of range"));
		CHECK(stint_eval(s, 0) == STINT_BAD_DATA);
		label[2] = 2;
		CHECK(stint_set(s, "target", label, sizeof label) == STINT_OK);
		i[1] = bad[k];
		CHECK(stint_set(s, "i", i, sizeof i) == STINT_OK);
		CHECK(stint_train(s, 0.1) == STINT_BAD_DATA);
		CHECK(strstr(stint_message(s), "look") && strstr(stint_message(s), "out of range"));
		CHECK(stint_eval(s, 0) == STINT_BAD_DATA);
		i[1] = 1;
		CHECK(stint_set(s, "i", i, sizeof i) == STINT_OK);
	}
	/* nothing was trained on what was refused, and the step still works */
	CHECK(stint_get(s, "table", after, sizeof after) == STINT_OK);
	CHECK(!memcmp(before, after, sizeof before));
	/* in two parts, with the next step's inputs set in between: the same steps */
	double loss[2][2];
	CHECK(stint_train_finish(s) == STINT_BAD_DATA && strstr(stint_message(s), "running"));
	for (int k = 0; k < 2; k++) {
		CHECK(stint_load(s, "weights.safetensors") == STINT_OK);
		CHECK((k ? stint_train_start : stint_train)(s, 0.1) == STINT_OK);
		label[2] = 1;
		CHECK(stint_set(s, "target", label, sizeof label) == STINT_OK);
		CHECK(!k || (stint_train_start(s, 0.1) == STINT_BAD_DATA &&
				    stint_eval(s, 0) == STINT_BAD_DATA));
		CHECK(!k || stint_train_finish(s) == STINT_OK);
		loss[k][0] = stint_loss(s);
		CHECK(stint_train(s, 0.1) == STINT_OK);
		loss[k][1] = stint_loss(s);
		label[2] = 2;
		CHECK(stint_set(s, "target", label, sizeof label) == STINT_OK);
	}
	CHECK(!memcmp(loss[0], loss[1], sizeof loss[0]));
	i[1] = -1; /* ONNX counts from the end */
	CHECK(stint_set(s, "i", i, sizeof i) == STINT_OK);
	CHECK(stint_train(s, 0.1) == STINT_OK);
	stint_free(s);
	return 0;
}
