// Runs CUDA C++ kernels on the CPU: included before the text of kernels, which the host's
// C++ compiler then compiles. Every thread of a block is a fiber, so barriers, shared memory
// and exchanges of warps mean what they mean on a GPU; blocks run one after the other. The
// order of threads between two barriers, and of blocks, can be changed: results that depend
// on it lack a barrier.
#pragma once
#define GOMEM_EMU 1
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <tuple>
#include <utility>
#include <vector>
#ifdef EMU_RACES
#include "watch.h"
#define EMU_LOCAL // launches come one after the other
#define EMU_WATCHED(call) if (emu::watching) emu::watching->call
#else
#define EMU_LOCAL thread_local
#define EMU_WATCHED(call)
#endif

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __align__(n) alignas(n)
#define __constant__ static
#define __shared__ static thread_local
// Dynamic shared memory has no form that a host compiler knows: kernels declare it by this
// macro, whose form for GPUs is in their own text.
#define DYNAMIC_SHARED(T, name) T *name = (T *)emu::block->shared

struct dim3 { unsigned x = 1, y = 1, z = 1; };
struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(8) int2 { int x, y; };
struct alignas(16) int4 { int x, y, z, w; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

namespace emu {

struct Fiber {
	void *sp;
	char *stack;
	dim3 tid;
	unsigned lane, warp;
	const unsigned *fences; // of its warp
	bool done;
	const char *wait; // what it waits in
	int line;         // of the barrier
};

// Fragments are a thread's parts of matrices of bfloat16 that its warp multiplies.
struct Fragments {
	uint16_t a[4][2], b[2][2];
};

struct Warp {
	unsigned live, arrived, gen;
	unsigned fences; // barriers that order memory
	bool fencing;    // those who arrived wait in one
	uint64_t slot[32];
	Fragments fragments[32];
};

struct Block {
	dim3 idx, grid, dim;
	char *shared;
	std::vector<Fiber> fibers;
	std::vector<Warp> warps;
	unsigned n, live, arrived = 0, gen = 0, done = 0;
	int line = 0;
	void *main_sp;
	void (*entry)(void *);
	void *arg;
	std::string error;
};
inline EMU_LOCAL Block *block;
inline EMU_LOCAL Fiber *self; // while it runs
#ifdef EMU_RACES
inline Watcher *watching;
#endif

// emu_switch saves the callee-saved registers and changes stacks.
#if defined(__x86_64__)
asm(R"(
.weak emu_switch
.type emu_switch,@function
emu_switch:
	pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15
	movq %rsp, (%rdi)
	movq %rsi, %rsp
	popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp
	ret
.size emu_switch,.-emu_switch
)");
extern "C" void emu_switch(void **save, void *load) __attribute__((visibility("hidden")));
inline void *new_stack(char *base, size_t size, void (*f)()) {
	void **sp = (void **)((uintptr_t)(base + size) & ~(uintptr_t)15);
	*--sp = nullptr; // f never returns; the stack is aligned as after a call
	*--sp = (void *)f;
	for (int i = 0; i < 6; i++) *--sp = nullptr;
	return sp;
}
#else
#error "emu_switch is written for x86-64 only"
#endif

const size_t stack_size = (64 << 10) + 1088; // odd: tops of stacks fall into other cache sets

inline void yield() {
	Fiber *f = self;
	emu_switch(&f->sp, block->main_sp);
}

inline void fiber_main() {
	block->entry(block->arg);
	self->done = true;
	yield();
	abort();
}

inline std::string place(const dim3 &p) {
	return std::to_string(p.x) + "," + std::to_string(p.y) + "," + std::to_string(p.z);
}

[[noreturn]] inline void fail(const std::string &why) {
	block->error = why + " (block " + place(block->idx) + ", thread " + place(self->tid) + ")";
	for (;;) yield();
}

// All threads of a block, or of a warp, have come to a barrier.
inline void met(Block &b) {
	b.arrived = 0;
	b.gen++;
	EMU_WATCHED(barrier());
}
inline void met(Warp &w) {
	w.arrived = 0;
	w.gen++;
	w.fences += w.fencing;
	w.fencing = false;
}

// A barrier of the block. Threads that have ended do not count, as on a GPU.
inline void syncthreads(int line) {
	Block *b = block;
	if (b->arrived == 0)
		b->line = line;
	else if (b->line != line)
		fail("threads meet at different barriers: lines " + std::to_string(b->line) + " and " +
			std::to_string(line));
	unsigned gen = b->gen;
	if (++b->arrived == b->live) {
		met(*b);
		return;
	}
	self->wait = "__syncthreads";
	self->line = line;
	while (b->gen == gen) yield();
	self->wait = nullptr;
}

// A barrier of a warp; exchanges have it, too, but do not order memory.
inline void syncwarp(bool fence = false) {
	Warp &w = block->warps[self->warp];
	unsigned gen = w.gen;
	w.fencing |= fence;
	if (++w.arrived == w.live) {
		met(w);
		return;
	}
	self->wait = "an exchange of its warp";
	while (w.gen == gen) yield();
	self->wait = nullptr;
}

template <class T> T exchange(T v, unsigned from, unsigned width) {
	static_assert(sizeof(T) <= 8);
	Warp &w = block->warps[self->warp];
	unsigned base = self->lane / width * width;
	memcpy(&w.slot[self->lane], &v, sizeof v);
	syncwarp();
	T r = v;
	if (from >= base && from < base + width) memcpy(&r, &w.slot[from], sizeof r);
	syncwarp();
	return r;
}

// multiply is c += a·b by a warp, as tensor cores have fragments of a 16×16 and a 16×8 matrix: of
// thread 4g+t. Sums are in order, which theirs need not be.
inline void multiply(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
	Warp &w = block->warps[self->warp];
	if (w.live != 32) fail("a product of a warp that not all threads come to");
	Fragments &mine = w.fragments[self->lane];
	memcpy(mine.a, a, sizeof a);
	memcpy(mine.b, b, sizeof b);
	syncwarp();
	for (int i = 0; i < 4; i++) {
		const Fragments *row = w.fragments + self->lane / 4 * 4;
		const Fragments *column = w.fragments + 4 * (self->lane % 4 * 2 + i % 2);
		for (int k = 0; k < 16; k++) {
			int t = k % 8 / 2;
			uint32_t x = row[t].a[i / 2 + k / 8 * 2][k % 2], y = column[t].b[k / 8][k % 2];
			float p, q;
			x <<= 16, y <<= 16;
			memcpy(&p, &x, 4);
			memcpy(&q, &y, 4);
			c[i] = fmaf(p, q, c[i]);
		}
	}
	syncwarp();
}

#ifdef EMU_RACES
} // namespace emu
#include "hooks.h"
namespace emu {
#endif

// order is the order in which threads run between two barriers, and blocks: 0 forward, 1
// backward, 2 scattered; of the last, not all of n come.
inline unsigned order(unsigned i, unsigned n, unsigned round, int mode) {
	if (mode == 1) return n - 1 - i;
	if (mode == 2) return (unsigned)((i * 2654435761ull + round * 40503ull) % n);
	return i;
}

inline void start(Block &b) {
	b.n = b.dim.x * b.dim.y * b.dim.z;
	b.live = b.n;
	b.arrived = b.done = 0;
	b.error.clear();
	b.fibers.resize(b.n);
	b.warps.assign((b.n + 31) / 32, Warp{});
	for (unsigned i = 0; i < b.n; i++) {
		Fiber &f = b.fibers[i];
		f.done = false;
		f.wait = nullptr;
		f.sp = nullptr;
		f.tid = {i % b.dim.x, i / b.dim.x % b.dim.y, i / b.dim.x / b.dim.y};
		f.lane = i % 32;
		f.warp = i / 32;
		f.fences = &b.warps[f.warp].fences;
		b.warps[f.warp].live++;
	}
}

// Stacks are handed out when a thread first runs and taken back when it ends, so a kernel
// without barriers needs one.
inline EMU_LOCAL std::vector<char *> stacks;

inline void leave(Block &b, Fiber &f) {
	stacks.push_back(f.stack);
	b.done++;
	b.live--;
	if (b.live && b.arrived == b.live) met(b);
	Warp &w = b.warps[f.warp];
	if (--w.live && w.arrived == w.live) met(w);
}

// step runs a thread to its next wait, and reports whether that changed anything.
inline bool step(Block &b, Fiber &f) {
	const char *wait = f.wait;
	int line = f.line;
	unsigned gen = b.warps[f.warp].gen;
	bool first = !f.sp;
	if (first) {
		if (stacks.empty()) stacks.push_back((char *)malloc(stack_size));
		f.stack = stacks.back();
		stacks.pop_back();
		f.sp = new_stack(f.stack, stack_size, fiber_main);
	}
	self = &f;
	emu_switch(&b.main_sp, f.sp);
	self = nullptr;
	bool moved = first || f.wait != wait || f.line != line || b.warps[f.warp].gen != gen;
	if (b.error.empty() && f.done) leave(b, f);
	return moved;
}

inline void give_up(Block &b) {
	for (auto &f : b.fibers)
		if (f.sp && !f.done) stacks.push_back(f.stack);
}

inline void stuck(Block &b) {
	for (auto &f : b.fibers)
		if (!f.done) {
			b.error = std::string("deadlock: a thread waits in ") + (f.wait ? f.wait : "?") +
				" that others never reach (thread " + place(f.tid) + ")";
			return;
		}
}

inline void run_block(Block &b, int mode) {
	block = &b;
	start(b);
	std::vector<bool> ran(b.n);
	for (unsigned round = 0; b.done < b.n && b.error.empty(); round++) {
		bool progress = false;
		unsigned gen = b.gen, done = b.done;
		std::fill(ran.begin(), ran.end(), false);
		for (unsigned k = 0; k < 2 * b.n && b.error.empty(); k++) {
			unsigned i = k < b.n ? order(k, b.n, round, mode) : k - b.n;
			if (b.fibers[i].done || ran[i]) continue;
			ran[i] = true;
			progress |= step(b, b.fibers[i]);
		}
		if (!progress && b.gen == gen && b.done == done && b.error.empty()) stuck(b);
	}
	give_up(b);
}

template <class... A, size_t... I>
void call(void (*k)(A...), std::tuple<A...> &t, std::index_sequence<I...>) {
	k(std::get<I>(t)...);
}

template <class T> T take(const char *args, size_t &at) {
	at = (at + alignof(T) - 1) / alignof(T) * alignof(T);
	T v;
	memcpy(&v, args + at, sizeof v);
	at += sizeof v;
	return v;
}

template <class... A> constexpr size_t size_of_args() {
	size_t at = 0;
	((at = (at + alignof(A) - 1) / alignof(A) * alignof(A) + sizeof(A)), ...);
	return at;
}

// launch calls k for the whole grid; args are the packed arguments.
template <class... A>
int launch(void (*k)(A...), const char *args, size_t size, dim3 grid, dim3 dim, size_t shared,
		int mode, char *err, size_t errn) {
	size_t want = size_of_args<A...>(), at = 0;
	if (want != size) {
		snprintf(err, errn, "takes %zu bytes of arguments, has %zu", want, size);
		return 1;
	}
	std::tuple<A...> t{take<std::remove_cv_t<A>>(args, at)...};
	struct Context { void (*k)(A...); std::tuple<A...> *t; } c{k, &t};
	auto entry = [](void *p) {
		Context *c = (Context *)p;
		call(c->k, *c->t, std::index_sequence_for<A...>{});
	};
	std::vector<char> room(shared + 64);
	Block b;
	b.grid = grid;
	b.dim = dim;
	b.entry = entry;
	b.arg = &c;
	b.shared = (char *)(((uintptr_t)room.data() + 63) & ~(uintptr_t)63);
	EMU_WATCHED(grid(fixed(), Span{(uintptr_t)b.shared, (uintptr_t)b.shared + shared}));
	uint64_t total = (uint64_t)grid.x * grid.y * grid.z;
	for (uint64_t j = 0; j < total; j++) {
		uint64_t i = mode == 1 ? total - 1 - j : j;
		b.idx = {(unsigned)(i % grid.x), (unsigned)(i / grid.x % grid.y),
			(unsigned)(i / grid.x / grid.y)};
		memset(b.shared, 0xff, shared); // NaN: shared memory starts undefined
		EMU_WATCHED(block());
		run_block(b, mode);
		if (!b.error.empty()) {
			snprintf(err, errn, "%s", b.error.c_str());
			return 1;
		}
	}
	return 0;
}

} // namespace emu

#define EMU_KERNEL(name) \
	extern "C" int name##__emu(const char *args, size_t size, const unsigned *d, size_t shared, \
			int mode, char *err, size_t errn) { \
		return emu::launch(name, args, size, dim3{d[0], d[1], d[2]}, dim3{d[3], d[4], d[5]}, \
			shared, mode, err, errn); \
	}

#define threadIdx (emu::self->tid)
#define blockIdx (emu::block->idx)
#define blockDim (emu::block->dim)
#define gridDim (emu::block->grid)
#define warpSize 32

#include "builtins.h"
