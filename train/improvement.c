#include "train/improvement.h"

#include <math.h>

bool improvement_told(struct improvement *i, double value)
{
	const bool better = !isnan(value) &&
			    (isnan(i->best) || (i->falls ? value < i->best : value > i->best));
	if (better)
		i->best = value;
	i->since = better ? 0 : i->since + 1;
	return better;
}
