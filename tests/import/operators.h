/* Tests of the importer with the real operators: a setup for cmocka. */
#ifndef STINT_TESTS_IMPORT_OPERATORS_H
#define STINT_TESTS_IMPORT_OPERATORS_H

#include "ops/ops.h"
#include "tests/import/model.h"

static int model_setup_operators(void **state)
{
	if (model_setup(state))
		return -1;
	struct model_test *t = *state;
	t->table = ops_table();
	return 0;
}

#endif
