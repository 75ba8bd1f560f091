/* IDX files, as MNIST comes in (the format is described on the MNIST database's page): two zero
 * bytes, a type, a rank, the dims in big-endian 32 bits, the elements big-endian. */
#include "data/stream.h"

int idx_read(struct stream *s, const unsigned char magic[4], struct dataset *d, struct elements *e)
{
	switch (magic[2]) {
	case 0x08:
		d->type = DATASET_U8;
		break;
	case 0x09:
		d->type = DATASET_I8;
		break;
	case 0x0b:
		d->type = DATASET_I16;
		break;
	case 0x0c:
		d->type = DATASET_I32;
		break;
	case 0x0d:
		d->type = DATASET_F32;
		break;
	case 0x0e:
		d->type = DATASET_F64;
		break;
	default:
		return stream_bad(s, "IDX has no element type 0x%02x", magic[2]);
	}
	d->rank = magic[3];
	if (d->rank < 1 || d->rank > DATASET_RANK)
		return stream_bad(s, "rank %d; 1 to %d are read", d->rank, DATASET_RANK);
	for (int i = 0; i < d->rank; i++) {
		unsigned char raw[4];
		if (stream_get(s, raw, sizeof raw))
			return 1;
		d->dim[i] = (int64_t)raw[0] << 24 | raw[1] << 16 | raw[2] << 8 | raw[3];
	}
	return stream_elements(s, d, 1, e);
}
