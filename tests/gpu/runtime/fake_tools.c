#include "fake_tools.h"

#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

struct fake *fake_of(stint_gpu *g)
{
	struct fake *f = stint_gpu_symbol(g, STINT_GPU_DRIVER, "fake");
	assert_non_null(f);
	return f;
}

stint_gpu *gpu_new(void)
{
	stint_gpu *g;
	int count;
	assert_int_equal(stint_gpu_new(&g, FAKES), STINT_OK);
	assert_int_equal(stint_gpu_cache(g, NULL), STINT_OK);
	assert_int_equal(stint_gpu_need(g, STINT_GPU_DRIVER), STINT_OK);
	struct fake *f = fake_of(g);
	assert_int_equal(f->live, 0); /* the test before left nothing */
	*f = (struct fake){
		.devices = 1, .major = 9, .version = 13000, .context = 256 * MIB, .unit = 2 * MIB};
	assert_int_equal(stint_gpu_count(g, &count), STINT_OK);
	assert_int_equal(count, 1);
	f->calls = 0;
	return g;
}

void gpu_done(stint_gpu *g)
{
	struct fake *f = fake_of(g);
	stint_gpu_free(g);
	assert_int_equal(f->live, 0);
	assert_int_equal(f->depth, 0);
	assert_int_equal(f->used, 0);
}

void folder_empty(const char *folder)
{
	DIR *d = opendir(folder);
	char path[4096];
	for (struct dirent *e; d && (e = readdir(d));) {
		snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
		unlink(path);
	}
	if (d)
		closedir(d);
	rmdir(folder);
}
