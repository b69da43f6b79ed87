// What CUDA C++ has beyond C++, as far as kernels use it.
#pragma once

#define __syncthreads() emu::syncthreads(__LINE__)
#define __syncwarp(...) emu::syncwarp(true)
#define __threadfence() ((void)0)
#define __threadfence_block() ((void)0)
#define __trap() emu::fail("trap")

template <class T> T __shfl_sync(unsigned, T v, int src, int width = 32) {
	return emu::exchange(v, emu::self->lane / width * width + (unsigned)src % width, width);
}
template <class T> T __shfl_xor_sync(unsigned, T v, int mask, int width = 32) {
	return emu::exchange(v, emu::self->lane ^ (unsigned)mask, width);
}
template <class T> T __shfl_down_sync(unsigned, T v, unsigned d, int width = 32) {
	return emu::exchange(v, emu::self->lane + d, width);
}
template <class T> T __shfl_up_sync(unsigned, T v, unsigned d, int width = 32) {
	return emu::exchange(v, emu::self->lane - d, width);
}
inline unsigned __ballot_sync(unsigned, int p) {
	emu::Warp &w = emu::block->warps[emu::self->warp];
	w.slot[emu::self->lane] = p != 0;
	emu::syncwarp();
	unsigned r = 0, rest = emu::block->n - emu::self->warp * 32;
	for (unsigned i = 0; i < (rest < 32 ? rest : 32); i++) r |= (unsigned)(w.slot[i] & 1) << i;
	emu::syncwarp();
	return r;
}
inline int __any_sync(unsigned m, int p) { return __ballot_sync(m, p) != 0; }

#ifndef EMU_RACES
namespace emu {
enum Kind { ATOMIC };
inline void touched(const void *, size_t, Kind) {}
}
#endif
template <class T, class F> __attribute__((no_sanitize("thread"))) T emu_atomic(T *p, F f) {
	emu::touched(p, sizeof *p, emu::ATOMIC);
	T old, now;
	__atomic_load(p, &old, __ATOMIC_SEQ_CST);
	do
		now = f(old);
	while (!__atomic_compare_exchange(p, &old, &now, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
	return old;
}
template <class T> T atomicAdd(T *p, T v) {
	return emu_atomic(p, [=](T o) { return (T)(o + v); });
}
template <class T> T atomicMax(T *p, T v) {
	return emu_atomic(p, [=](T o) { return o > v ? o : v; });
}
template <class T> T atomicMin(T *p, T v) {
	return emu_atomic(p, [=](T o) { return o < v ? o : v; });
}
template <class T> T atomicExch(T *p, T v) {
	return emu_atomic(p, [=](T) { return v; });
}
template <class T> T atomicCAS(T *p, T c, T v) {
	return emu_atomic(p, [=](T o) { return o == c ? v : o; });
}

template <class A, class B> auto min(A a, B b) -> decltype(a + b) { return a < b ? a : b; }
template <class A, class B> auto max(A a, B b) -> decltype(a + b) { return a > b ? a : b; }
inline float __expf(float x) { return expf(x); }
inline float __logf(float x) { return logf(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float rsqrtf(float x) { return 1.f / sqrtf(x); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return sqrtf(a); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
template <class T> T __ldg(const T *p) { return *p; }
inline unsigned __float_as_uint(float f) {
	unsigned u;
	memcpy(&u, &f, 4);
	return u;
}
inline float __uint_as_float(unsigned u) {
	float f;
	memcpy(&f, &u, 4);
	return f;
}
inline int __float_as_int(float f) { return (int)__float_as_uint(f); }
inline float __int_as_float(int u) { return __uint_as_float((unsigned)u); }
inline long long __double_as_longlong(double d) {
	long long u;
	memcpy(&u, &d, 8);
	return u;
}
inline double __longlong_as_double(long long u) {
	double d;
	memcpy(&d, &u, 8);
	return d;
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)(((uint64_t)a * b) >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
	return (unsigned long long)(((unsigned __int128)a * b) >> 64);
}
