/* What a struct stint_options is. */
#ifndef STINT_API_STINT_OPTIONS_H
#define STINT_API_STINT_OPTIONS_H

#include <stdatomic.h>

#include "api/options.h"
#include "api/told.h"

struct stint_options {
	atomic_int users; /* it lives as long as one does: its maker, and results that read its
			     values */
	struct told told;
	struct arena *arena; /* of the values */
	struct options options;
};

/* For a result; ended by stint_options_free. */
struct stint_options *options_share(const struct stint_options *o);

#endif
