// Runs commands on memory that it shares with a test: a file at a fixed address. The kernels and
// a table of them, kernels[], stand before this text.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

struct GemmCommand {
	uint64_t a, b, c;
	int64_t trans_a, trans_b, m, n, k, lda, ldb, ldc, batch, stride_a, stride_b, stride_c;
	float alpha, beta;
	uint64_t half_in, half_out;
};

static float number(const char *p, int64_t i, bool half) {
	if (!half) return ((const float *)p)[i];
	uint32_t u = (uint32_t)((const uint16_t *)p)[i] << 16;
	float x;
	memcpy(&x, &u, 4);
	return x;
}

static void put(char *p, int64_t i, bool half, float x) {
	if (!half) {
		((float *)p)[i] = x;
		return;
	}
	uint32_t u;
	memcpy(&u, &x, 4);
	u = x != x ? u | 0x400000 : u + 0x7fff + (u >> 16 & 1);
	((uint16_t *)p)[i] = (uint16_t)(u >> 16);
}

#ifdef EMU_RACES
// row tells of n elements of a matrix's row i, of those of column i if they are step apart.
static bool row(uint64_t p, int64_t i, int64_t n, int64_t ld, bool across, bool half, emu::Kind k) {
	int64_t size = half ? 2 : 4;
	if (!across) return emu::touch((char *)p + size * i * ld, size * n, k);
	for (int64_t j = 0; j < n; j++)
		if (!emu::touch((char *)p + size * (i + j * ld), size, k)) return false;
	return true;
}

// told tells of what a product touches.
static bool told(GemmCommand g) {
	for (int64_t z = 0; z < g.batch; z++) {
		bool ok = true;
		for (int64_t i = 0; i < g.m && ok; i++)
			ok = row(g.a, i, g.k, g.lda, g.trans_a, g.half_in, emu::READ) &&
				(!g.beta || row(g.c, i, g.n, g.ldc, false, g.half_out, emu::READ)) &&
				row(g.c, i, g.n, g.ldc, false, g.half_out, emu::WRITE);
		for (int64_t i = 0; i < g.n && ok; i++)
			ok = row(g.b, i, g.k, g.ldb, !g.trans_b, g.half_in, emu::READ);
		if (!ok) return false;
		g.a += g.stride_a * (g.half_in ? 2 : 4), g.b += g.stride_b * (g.half_in ? 2 : 4);
		g.c += g.stride_c * (g.half_out ? 2 : 4);
	}
	return true;
}
#endif

static void multiply(const GemmCommand &g) {
	for (int64_t i = 0; i < g.batch; i++) {
		int in = g.half_in ? 2 : 4, out = g.half_out ? 2 : 4;
		const char *a = (char *)g.a + in * i * g.stride_a, *b = (char *)g.b + in * i * g.stride_b;
		char *c = (char *)g.c + out * i * g.stride_c;
		for (int64_t y = 0; y < g.m; y++)
			for (int64_t x = 0; x < g.n; x++) {
				double sum = 0;
				for (int64_t k = 0; k < g.k; k++)
					sum += (double)number(a, g.trans_a ? k * g.lda + y : y * g.lda + k, g.half_in) *
						number(b, g.trans_b ? x * g.ldb + k : k * g.ldb + x, g.half_in);
				int64_t at = y * g.ldc + x;
				float was = g.beta == 0 ? 0 : g.beta * number(c, at, g.half_out);
				put(c, at, g.half_out, g.alpha * (float)sum + was);
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
#ifdef EMU_RACES
			emu::begin({0, {}, name, std::string(args.data(), args.size())});
#endif
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
#ifdef EMU_RACES
	emu::watching = emu::watcher();
	emu::own((uintptr_t)at, size, emu::GUARDED);
	emu::grant((uintptr_t)at, 64, true);
#endif
	for (char kind; get(&kind, 1);) {
		char err[512] = "";
#ifdef EMU_RACES
		if (kind != 'm') emu::begin({0, {}, "a command", ""});
#endif
#ifdef MUTANTS
		alarm(mutant < 0 ? 0 : 20); // one may never end
#endif
		if (kind == 'k') {
			if (!launch(err, sizeof err)) return 3;
		} else if (kind == 'g') {
			GemmCommand g;
			if (!get(&g, sizeof g)) return 3;
#ifdef EMU_RACES
			if (!told(g)) snprintf(err, sizeof err, "%s", emu::watcher()->error.c_str());
			else
#endif
			multiply(g);
		} else if (kind == 'c') {
			uint64_t c[3]; // to, from, bytes
			if (!get(&c, sizeof c)) return 3;
#ifdef EMU_RACES
			if (!emu::touch((void *)c[1], c[2], emu::READ) ||
				!emu::touch((void *)c[0], c[2], emu::WRITE))
				snprintf(err, sizeof err, "%s", emu::watcher()->error.c_str());
			else
#endif
			if (c[0] < c[1] + c[2] && c[1] < c[0] + c[2]) snprintf(err, sizeof err, "an overlap");
			else memcpy((void *)c[0], (void *)c[1], c[2]);
#ifdef MUTANTS
		} else if (kind == 'x') {
			if (!get((void *)&mutant, sizeof mutant)) return 3;
			std::string list;
			for (int i = 0; i < MUTANTS; i++)
				if (mutant_ran[i]) list += std::to_string(i) + " ", mutant_ran[i] = false;
			answer(list.c_str());
			continue;
#endif
		} else if (kind == 'm') {
			uint64_t n, s[3];
			if (!get(&n, sizeof n)) return 3;
#ifdef EMU_RACES
			emu::revoke((uintptr_t)at);
#endif
			for (; n; n--) {
				if (!get(s, sizeof s)) return 3;
#ifdef EMU_RACES
				emu::grant(s[0], s[1], s[2]);
#endif
			}
		} else {
			uint64_t f[3];
			if (!get(f, sizeof f)) return 3;
#ifdef EMU_RACES
			if (!emu::touch((void *)f[0], 4 * f[1], emu::WRITE))
				snprintf(err, sizeof err, "%s", emu::watcher()->error.c_str());
			else
#endif
			for (uint64_t i = 0; i < f[1]; i++) ((uint32_t *)f[0])[i] = (uint32_t)f[2];
		}
		answer(err);
	}
}
