/* All templates, for check.c. */
#include "softmax.h"
#include "softmax_grad.h"
