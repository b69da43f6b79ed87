#include "peer.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int threads;
float *result;
size_t results;

static void *memory[max_operands];

/* The same numbers as those of fill in operand.go. */
static float number(uint32_t seed, uint32_t i)
{
	uint32_t h = (i + seed * 0x9e3779b9u) * 2654435761u;
	h ^= h >> 16;
	h *= 0x85ebca6bu;
	h ^= h >> 13;
	return (float)(h >> 8) / 8388608.0f - 1.0f;
}

/* Operands begin at different offsets from a page, as they do in an arena:
 * else loads would wait for stores to the same offset. */
float *operand(int i, size_t n)
{
	free(memory[i]);
	if (posix_memalign(&memory[i], 4096, n * sizeof(float) + 4096) != 0)
		abort();
	float *x = (float *)((char *)memory[i] + 448 * i);
	for (size_t j = 0; j < n; j++)
		x[j] = number(i, j);
	return x;
}

/* One thread is timed by the processor's clock, as gomem's is. */
static double now(void)
{
	struct timespec t;
	clock_gettime(threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static double repeat(long repetitions)
{
	launch();
	double start = now();
	for (long i = 0; i < repetitions; i++)
		launch();
	return now() - start;
}

static void answer(double seconds, int sums)
{
	double sum = 0, magnitude = 0;
	for (size_t i = 0; sums && i < results; i++) {
		sum += result[i] * (double)(1 + i % 7);
		magnitude += fabs(result[i] * (double)(1 + i % 7));
	}
	printf("%.9g %.17g %.17g\n", seconds, sum, magnitude);
}

static void serve(char *line)
{
	long integers[max_integers];
	int count = 0;
	long repetitions = strtol(strtok(line, " \n"), NULL, 10);
	const char *name = strtok(NULL, " \n");
	for (char *word; count < max_integers && (word = strtok(NULL, " \n"));)
		integers[count++] = strtol(word, NULL, 10);
	if (repetitions > 0) {
		answer(repeat(repetitions), 0);
		return;
	}
	const char *error = name ? prepare(name, integers, count) : "no name";
	if (error) {
		printf("error %s\n", error);
		return;
	}
	launch();
	answer(0, 1);
}

int main(int argc, char **argv)
{
	char line[512];
	threads = argc > 1 ? atoi(argv[1]) : 1;
	describe(line, sizeof line);
	puts(line);
	fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		serve(line);
		fflush(stdout);
	}
	return 0;
}
