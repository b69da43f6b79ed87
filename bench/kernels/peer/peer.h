/*
 * The frame of a peer: a program that times one library's kernels for the
 * benchmark in the folder above. It reads lines
 *
 *     repetitions name integer ...
 *
 * from standard input and answers each with a line of its own: the seconds that
 * the repetitions took, a weighted sum of the result, and the same sum of
 * magnitudes. Zero repetitions run the kernel once on fresh operands and answer
 * with the sums; other numbers run it once more to warm up, and time it. The
 * first line that it writes names the library. A problem that it does not know
 * is answered by "error" and a reason.
 */
#ifndef PEER_H
#define PEER_H

#include <stddef.h>

enum { max_operands = 8, max_integers = 16 };

/* What a peer defines. */
void describe(char *text, size_t size);
const char *prepare(const char *name, const long *integers, int count);
void launch(void);

/* What it is given. */
extern int threads;
extern float *result; /* prepare sets what the sums are of */
extern size_t results;

/* operand allocates operand i and fills it with n reproducible numbers in [-1, 1). */
float *operand(int i, size_t n);

#endif
