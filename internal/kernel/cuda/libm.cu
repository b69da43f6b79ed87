// Elementary functions with the host's bits: of single numbers those of internal/kernel/vec, of
// double ones those of internal/libm, operation by operation. The compiler's own differ in last
// bits, and where an operation is computed is a plan's choice, which may not show.

// Polynomials, the highest power first: of single numbers fused, of double ones not.
__device__ __forceinline__ float poly(float, float p) { return p; }
template <class... A> __device__ __forceinline__ float poly(float x, float p, float a, A... rest) {
	return poly(x, fmaf(p, x, a), rest...);
}
__device__ __forceinline__ double poly(double, double p) { return p; }
template <class... A>
__device__ __forceinline__ double poly(double x, double p, double a, A... rest) {
	return poly(x, p * x + a, rest...);
}

__device__ __forceinline__ float nan32() { return __int_as_float(0x7fc00000); }
__device__ __forceinline__ float neg32(float x) {
	return __int_as_float(__float_as_int(x) ^ 0x80000000);
}
__device__ __forceinline__ float abs32(float x) {
	return __int_as_float(__float_as_int(x) & 0x7fffffff);
}
__device__ __forceinline__ float relu32(float x) { return 0.f > x ? 0.f : x; }
__device__ __forceinline__ float rsqrt32(float x) { return 1.f / sqrtf(x); }
__device__ __forceinline__ float with_sign(float x, float y) {
	return __int_as_float((__float_as_int(x) & 0x7fffffff) | (__float_as_int(y) & 0x80000000));
}

// x = n·log 2 + r.
struct Reduced {
	float n, r;
};
__device__ __forceinline__ Reduced reduce(float x) {
	const float magic = 0x1.8p+23f;
	float n = fmaf(x, 0x1.715476p+0f, magic) - magic;
	return Reduced{n, fmaf(n, 0x1.bd0106p-13f, fmaf(n, -0x1.63p-1f, x))};
}
__device__ __forceinline__ float pow2(int k) { return __int_as_float((int)((unsigned)(k + 127) << 23)); }
__device__ __forceinline__ float scaled(float p, float n) {
	int k = (int)n, h = k >> 1;
	return p * pow2(h) * pow2(k - h);
}
__device__ __forceinline__ float exp_poly(float r) {
	return poly(r, 0x1.6ac8a2p-10f, 0x1.122c0cp-7f, 0x1.555798p-5f, 0x1.5554aap-3f,
		0x1.fffffep-2f);
}
__device__ __forceinline__ float exp_reduced(float r) {
	return fmaf(fmaf(exp_poly(r), r, 1.f), r, 1.f);
}
__device__ __forceinline__ float exp32(float x) {
	Reduced d = reduce(min_of(max_of(x, -110.f), 89.f));
	return scaled(exp_reduced(d.r), d.n);
}
__device__ inline float log32(float x) {
	float m = x, less = 0;
	if (x < 0x1p-126f) m = x * 0x1p23f, less = 23;
	const u32 half = 0x3f3504f3; // √½
	int i = (int)((u32)__float_as_int(m) - half);
	float k = (float)(i >> 23) - less;
	float f = __int_as_float((i & 0x7fffff) + half) - 1.f;
	float s = f / (2.f + f), z = s * s, h = .5f * f * f;
	float p = poly(z, 0x1.321c12p-2f, 0x1.995cc2p-2f, 0x1.55557cp-1f);
	float t = fmaf(s, fmaf(z, p, h), k * -0x1.bd0106p-13f);
	t = fmaf(k, 0x1.63p-1f, (t - h) + f);
	if (x < 0) return nan32();
	if (x == 0) return -infinity();
	return x < infinity() ? t : x;
}
__device__ inline float tanh32(float x) {
	Reduced d = reduce(max_of(-2.f * abs32(x), -40.f));
	float p = fmaf(exp_poly(d.r), d.r * d.r, d.r), s = pow2((int)d.n);
	float u = fmaf(s, p, s - 1.f);
	return with_sign(neg32(u) / (2.f + u), x);
}
__device__ __forceinline__ float sigmoid(float x) {
	float e = exp32(neg32(abs32(x)));
	return x < 0 ? e / (1.f + e) : 1.f / (1.f + e);
}

// Φ(−t) = m·p·2ⁿ and e^(−t²/2) = p·2ⁿ.
struct Tail {
	float m, p, n;
};
__device__ inline Tail normal_tail(float t) {
	float u = 1.f / fmaf(t, 0x1.333334p-2f, 1.f), h = t * t, l = fmaf(t, t, neg32(h));
	Reduced d = reduce(-.5f * h);
	float mills = poly(t * u, 0x1.b47e08p-22f, -0x1.4259bp-18f, 0x1.04e496p-16f, 0x1.f76e6ep-18f,
		0x1.d9293p-15f, -0x1.288f3ap-10f, -0x1.1ec836p-9f, 0x1.c7bf5ep-5f, -0x1.fdd566p-3f, .5f);
	return Tail{u * mills, exp_reduced(fmaf(l, -.5f, d.r)), d.n};
}
__device__ inline float gelu(float x) {
	float t = min_of(abs32(x), 15.f);
	Tail d = normal_tail(t);
	return relu32(x) - scaled(t * d.m * d.p, d.n);
}
__device__ inline float gelu_slope(float x) {
	float t = min_of(abs32(x), 15.f);
	Tail d = normal_tail(t);
	float s = scaled(fmaf(neg32(t), 0x1.988454p-2f, d.m) * d.p, d.n);
	return x > 0 ? 1.f - s : s;
}
__device__ inline float erf32(float x) {
	float a = abs32(x);
	if (a < 1) {
		float p = poly(x * x, 0x1.4771fcp-14f, -0x1.a3515ep-11f, 0x1.53f224p-8f, -0x1.b7f71ap-6f,
			0x1.ce2ce6p-4f, -0x1.81273ep-2f, 0x1.06eba8p-3f);
		return fmaf(p, x, x);
	}
	Tail d = normal_tail(min_of(a * 0x1.6a09e6p+0f, 15.f));
	return with_sign(fmaf(scaled(d.m * d.p, d.n), -2.f, 1.f), x);
}

#define LN2_HI 0x1.62e42feep-1
#define LN2_LO 0x1.a39ef35793c76p-33

__device__ inline double exp64(double x) {
	if (x != x) return x;
	if (x > 710) return infinity();
	if (x < -746) return 0;
	double n = floor(x * 1.44269504088896340735992468100189214 + .5);
	double r = (x - n * LN2_HI) - n * LN2_LO;
	double p = poly(r, 1. / 6227020800, 1. / 479001600, 1. / 39916800, 1. / 3628800, 1. / 362880,
		1. / 40320, 1. / 5040, 1. / 720, 1. / 120, 1. / 24, 1. / 6, 1. / 2);
	return ldexp(1 + (r + r * r * p), (int)n);
}
__device__ inline double log64(double x) {
	if (x < 0) return nan32();
	if (x == 0) return -infinity();
	if (!(x < infinity())) return x;
	int e;
	double m = frexp(x, &e);
	if (m < 0.70710678118654752440) m = 2 * m, e--;
	double k = e, f = m - 1, s = f / (2 + f), z = s * s, half = .5 * f * f;
	double p = poly(z, 2. / 23, 2. / 21, 2. / 19, 2. / 17, 2. / 15, 2. / 13, 2. / 11, 2. / 9,
		2. / 7, 2. / 5, 2. / 3);
	double rest = s * (half + z * p) + k * LN2_LO;
	return k * LN2_HI - ((half - rest) - f);
}
__device__ inline double log1p64(double x) {
	double u = 1 + x;
	return u == 1 ? x : log64(u) * x / (u - 1);
}
__device__ inline double pow64(double x, double y) {
	if (x == 0) return 0;
	if (x == infinity() || !(fabs(y) < 2147483648.)) return exp64(y * log64(x));
	double whole = trunc(fabs(y)), part = fabs(y) - whole, p = 1;
	if (part > .5) whole++, part--;
	int first;
	if (part != 0) p = exp64(part * log64(x));
	double m = frexp(x, &first);
	i64 e = 0, k = first; // which grow with y
	for (i64 i = (i64)whole; i; i >>= 1) {
		if (i & 1) p *= m, e += k;
		m *= m, k *= 2;
		if (m < .5) m *= 2, k--;
	}
	if (y < 0) p = 1 / p, e = -e;
	return ldexp(p, (int)(e > 9999 ? 9999 : e < -9999 ? -9999 : e));
}
struct Turn {
	double sin, cos;
};
__device__ inline Turn turned_by(Turn t, int quarters) {
	switch (quarters & 3) {
	case 0: return t;
	case 1: return Turn{t.cos, -t.sin};
	case 2: return Turn{-t.sin, -t.cos};
	}
	return Turn{-t.cos, t.sin};
}
// NaN unless |x| < 2²⁰.
__device__ inline Turn sincos64(double x) {
	if (!(fabs(x) < 1048576)) return Turn{nan32(), nan32()};
	double n = floor(x * 0.636619772367581343075535053490057448 + .5);
	double r = ((x - n * 0x1.921fb544p+0) - n * 0x1.0b4611a6p-34) - n * 0x1.3198a2e037073p-69;
	double z = r * r;
	double s = poly(z, 1. / 355687428096000, -1. / 1307674368000, 1. / 6227020800,
		-1. / 39916800, 1. / 362880, -1. / 5040, 1. / 120, -1. / 6);
	double c = poly(z, 1. / 20922789888000, -1. / 87178291200, 1. / 479001600, -1. / 3628800,
		1. / 40320, -1. / 720, 1. / 24, -1. / 2);
	return turned_by(Turn{r + r * z * s, 1 + z * c}, (int)n);
}

// 64 bits of 2/π from one on; those before the point are zeros.
__device__ inline u64 bits_from(int at) {
	static const u64 words[5] = {0xa2f9836e4e441529ull, 0xfc2757d1f534ddc0ull, 0xdb6295993c439041ull,
		0xfe5163abdebbc561ull, 0xb7246e3a424dd2e0ull};
	if (at < 0) return words[0] >> -at;
	int word = at / 64, off = at % 64;
	return off ? words[word] << off | words[word + 1] >> (64 - off) : words[word];
}
__device__ inline Turn sincos32(float x) {
	double wide = x;
	if (!(fabs(wide) >= 1048576) || fabs(wide) == infinity()) return sincos64(wide);
	int e;
	u64 mantissa = (u64)(frexp(fabs(wide), &e) * 16777216);
	u64 hi = bits_from(e - 26), lo = bits_from(e - 26 + 64);
	u64 low = mantissa * lo, turn = mantissa * hi + __umul64hi(mantissa, lo);
	double part = (double)((i64)(turn << 2) >> 2) + (double)low * 0x1p-64;
	Turn t = sincos64(part * (1.57079632679489661923132169163975144 * 0x1p-62));
	t = turned_by(t, (int)((turn + (1ull << 61)) >> 62));
	return Turn{wide < 0 ? -t.sin : t.sin, t.cos};
}
__device__ inline float sin32(float x) { return x == 0 ? x : (float)sincos32(x).sin; }
__device__ inline float cos32(float x) { return (float)sincos32(x).cos; }
__device__ inline float log1p32(float x) {
	return x == 0 || x == infinity() ? x : (float)log1p64(x);
}
__device__ inline float expm1_32(float x) {
	double wide = x, square = wide * wide;
	if (!(fabs(wide) < 1e-5)) return (float)(exp64(wide) - 1);
	return x == 0 ? x : (float)(wide + .5 * square + square * (wide * (1. / 6)));
}
__device__ inline float softplus(float x) {
	double wide = x;
	return is_nan(x) ? x : (float)((wide > 0 ? wide : 0) + log1p64(exp64(-fabs(wide))));
}
__device__ inline double pow_signed(double x, double b) {
	double a = fabs(x), most = infinity(), p;
	if (x == 1 || b == 0) return 1;
	if (x != x || b != b) return nan32();
	if (fabs(b) == most) return a == 1 ? 1. : (a > 1) == (b > 0) ? most : 0.;
	bool whole = b == trunc(b), odd = whole && fabs(b) < 9007199254740992. && ((i64)b & 1);
	if (x < 0 && !whole && a != most) return nan32();
	if ((a == 0 && b < 0) || (a == most && b > 0)) p = most;
	else if (a == 0 || a == most) p = 0;
	else p = pow64(a, b);
	return odd && copysign(1., x) < 0 ? -p : p;
}
__device__ inline float pow32(float x, float y) { return (float)pow_signed(x, y); }
__device__ inline double expm1_64(double x) {
	if (!(fabs(x) < 40)) return exp64(x) - 1;
	double n = floor(x * 1.44269504088896340735992468100189214 + .5);
	double r = (x - n * LN2_HI) - n * LN2_LO;
	double p = poly(r, 1. / 6227020800, 1. / 479001600, 1. / 39916800, 1. / 3628800, 1. / 362880,
		1. / 40320, 1. / 5040, 1. / 720, 1. / 120, 1. / 24, 1. / 6, 1. / 2);
	double t = r + r * r * p, q = ldexp(1., (int)n);
	return n == 0 ? t : q * t + (q - 1);
}
__device__ inline double tanh64(double x) {
	double t = expm1_64(-2 * fabs(x));
	return copysign(-t / (2 + t), x);
}
__device__ inline double sigmoid64(double x) {
	double e = exp64(-fabs(x));
	return x < 0 ? e / (1 + e) : 1 / (1 + e);
}
