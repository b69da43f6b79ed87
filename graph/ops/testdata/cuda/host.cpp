// Runs commands on memory that it shares with a test: a file at a fixed address. The kernels and
// a table of them, kernels[], stand before this text.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

struct GemmCommand {
	uint64_t a, b, c;
	int64_t trans_a, trans_b, m, n, k, lda, ldb, ldc, batch, stride_a, stride_b, stride_c;
	float alpha, beta;
};

static void multiply(const GemmCommand &g) {
	for (int64_t i = 0; i < g.batch; i++) {
		const float *a = (float *)g.a + i * g.stride_a, *b = (float *)g.b + i * g.stride_b;
		float *c = (float *)g.c + i * g.stride_c;
		for (int64_t y = 0; y < g.m; y++)
			for (int64_t x = 0; x < g.n; x++) {
				double sum = 0;
				for (int64_t k = 0; k < g.k; k++)
					sum += (double)(g.trans_a ? a[k * g.lda + y] : a[y * g.lda + k]) *
						(g.trans_b ? b[x * g.ldb + k] : b[k * g.ldb + x]);
				float &to = c[y * g.ldc + x];
				to = g.alpha * (float)sum + (g.beta == 0 ? 0 : g.beta * to);
			}
	}
}

static bool get(void *to, size_t n) { return fread(to, 1, n, stdin) == n; }

static void answer(const char *text) {
	printf("%s\n", text);
	fflush(stdout);
}

static bool launch(char *err, size_t room) {
	char name[64];
	uint32_t head[9]; // grid, block, shared bytes, bytes of arguments, order of threads
	if (!get(name, sizeof name) || !get(head, sizeof head)) return false;
	std::vector<char> args(head[7]);
	if (!get(args.data(), args.size())) return false;
	for (auto &k : kernels)
		if (!strcmp(k.name, name)) {
			k.run(args.data(), args.size(), head, head[6], head[8], err, room);
			return true;
		}
	snprintf(err, room, "no kernel %s", name);
	return true;
}

int main(int, char **argv) {
	size_t size = atoll(argv[2]);
	int file = open(argv[1], O_RDWR);
	void *want = (void *)strtoull(argv[3], nullptr, 0);
	void *at = mmap(want, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, file, 0);
	if (at != want) return 2;
	for (char kind; get(&kind, 1);) {
		char err[512] = "";
		if (kind == 'k') {
			if (!launch(err, sizeof err)) return 3;
		} else if (kind == 'g') {
			GemmCommand g;
			if (!get(&g, sizeof g)) return 3;
			multiply(g);
		} else {
			uint64_t f[3];
			if (!get(f, sizeof f)) return 3;
			for (uint64_t i = 0; i < f[1]; i++) ((uint32_t *)f[0])[i] = (uint32_t)f[2];
		}
		answer(err);
	}
}
