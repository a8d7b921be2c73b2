/*
 * A fuzz target is one function over bytes. Under libFuzzer it is fed with what libFuzzer makes up;
 * the plain tests feed it with the files of its corpus.
 */
#ifndef CSW_TESTS_FUZZ_FUZZ_H
#define CSW_TESTS_FUZZ_FUZZ_H

#include <dirent.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What the target found out is wrong: ends the program, under libFuzzer and in tests. */
#define FUZZ_ASSERT(condition)                                                                     \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);            \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

/* Runs the target over every file of the folder, and over each cut short at `step` and its
 * multiples. How many files there were, -1 without the folder. */
static inline int fuzz_run_corpus(const char *folder, size_t step)
{
	static uint8_t data[1 << 16];
	DIR *dir = opendir(folder);
	struct dirent *entry;
	int nr = 0;

	while (dir && (entry = readdir(dir))) {
		char path[PATH_MAX];
		size_t size;
		FILE *file;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		file = fopen(path, "rb");
		if (!file)
			continue;
		size = fread(data, 1, sizeof(data), file);
		fclose(file);
		LLVMFuzzerTestOneInput(data, size);
		for (size_t cut = 0; cut < size; cut += step)
			LLVMFuzzerTestOneInput(data, cut);
		nr++;
	}
	if (!dir)
		return -1;
	closedir(dir);
	return nr;
}

#endif
