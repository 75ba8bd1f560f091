/* All templates, for check.c. */
#include "attention.h"
#include "attention_grad.h"
#include "bernoulli.h"
#include "cumsum.h"
#include "dropout.h"
#include "onehot.h"
#include "softmax.h"
#include "softmax_grad.h"
