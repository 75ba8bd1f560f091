/* All templates, for check.c. */
#include "attention.h"
#include "attention_grad.h"
#include "crossentropy.h"
#include "crossentropy_grad.h"
#include "softmax.h"
#include "softmax_grad.h"
