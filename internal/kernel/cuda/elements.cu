// Elementwise operations: a chain is interpreted, four elements of a thread at a time, so that
// one program serves every chain. All threads take the same way through it, and no product of an
// instruction is fused with a sum of another: a chain has the bits of its operations.

enum {
	ADD, SUB, MUL, DIV, MAXIMUM, AT_LEAST, MINIMUM, POWER,
	NEG, EXP, LOG, SQRT, RSQRT, SQUARE, RELU, TANH, SIGMOID, GELU,
	RELU_SLOPE, TANH_SLOPE, SIGMOID_SLOPE, GELU_SLOPE,
	ABS, SIGN, FLOOR, CEIL, TRUNC, ROUND, RECIPROCAL, SIN, COS, ERF, LOG1P, EXPM1, SOFTPLUS, SILU,
	SILU_SLOPE, GELU_TANH, GELU_TANH_SLOPE, SCALE, SHIFT, CLIP, CLIP_SLOPE, CLIPPED_RELU,
	CLIPPED_RELU_SLOPE, POWER_SCALAR, DROPOUT, JITTER, WEIGH, MOD, REMAINDER,
	BIT_AND, BIT_OR, BIT_XOR, SHIFT_LEFT, SHIFT_RIGHT, BIT_NOT,
};

// An operand: element i of the result meets element (i/hold) mod period of it. It is an address
// and two numbers; the number 0 for period is as many as the result has. Half: it has bfloat16.
struct Spread {
	u64 at;
	i64 hold, period;
	int half, unused;
};

// An instruction: operation, references (an operand, or ^i, the result of instruction i, or
// NONE), whether its result is read by other than the next, constants, and whether the result
// is rounded to bfloat16.
#define NONE 100
struct Instruction {
	int op, a, b, keep;
	float p, q;
	u32 limit, round;
	u64 salt, from;
};

struct Chain {
	i64 n;
	int count, half; // half: the result has bfloat16
	Spread in[6];
	Instruction code[8];
	Walk window; // from elements to those whose noise they draw; of no axes, they themselves
};

__device__ __forceinline__ float silu_slope(float x) {
	float s = sigmoid(x);
	return x * fmaf(-s, s, s) + s;
}
#define GELU_RATE 1.5957691216057307117597842397375f // 2·√(2/π)
#define GELU_BEND .0713548162726002487763387522798635f // that times 0.044715
__device__ __forceinline__ float gelu_gate(float x) {
	return sigmoid(fmaf(x * x, GELU_BEND, GELU_RATE) * x);
}
__device__ __forceinline__ float gelu_tanh_slope(float x) {
	float s = gelu_gate(x), square = min_of(x * x, 3.4028235e38f); // if ∞, with 0 before it
	float bend = fmaf(square, .2140644488178007463290162568395906f, GELU_RATE);
	return x * fmaf(-s, s, s) * bend + s;
}
// What is left has the sign of b, also if it is zero.
__device__ inline double modulo(double a, double b) {
	double r = fmod(a, b);
	if (r == 0) return copysign(0., b);
	return (r < 0) != (b < 0) ? r + b : r;
}
__device__ inline float apply(const Instruction &c, float x, float y) {
	switch (c.op) {
	case ADD: return x + y;
	case SUB: return x - y;
	case MUL: return x * y;
	case DIV: return x / y;
	case MAXIMUM: return max_of(x, y);
	case MINIMUM: return min_of(x, y);
	case AT_LEAST: return x >= y ? 1.f : 0.f;
	case POWER: return pow32(x, y);
	case WEIGH: return y == 0.f ? 0.f : x * y;
	case MOD: return (float)modulo(x, y);
	case REMAINDER: return (float)fmod((double)x, (double)y);
	case NEG: return neg32(x);
	case EXP: return exp32(x);
	case LOG: return log32(x);
	case SQRT: return sqrtf(x);
	case RSQRT: return rsqrt32(x);
	case SQUARE: return x * x;
	case RELU: return relu32(x);
	case TANH: return tanh32(x);
	case SIGMOID: return sigmoid(x);
	case GELU: return gelu(x);
	case RELU_SLOPE: return x <= 0.f ? 0.f : y;
	case TANH_SLOPE: return y * fmaf(-x, x, 1.f);
	case SIGMOID_SLOPE: return y * fmaf(-x, x, x);
	case GELU_SLOPE: return y * gelu_slope(x);
	case ABS: return abs32(x);
	case SIGN: return x > 0.f ? 1.f : x < 0.f ? -1.f : 0.f;
	case FLOOR: return floorf(x);
	case CEIL: return ceilf(x);
	case TRUNC: return truncf(x);
	case ROUND: return rintf(x);
	case RECIPROCAL: return 1.f / x;
	case SIN: return sin32(x);
	case COS: return cos32(x);
	case ERF: return erf32(x);
	case LOG1P: return log1p32(x);
	case EXPM1: return expm1_32(x);
	case SOFTPLUS: return softplus(x);
	case SILU: return x * sigmoid(x);
	case SILU_SLOPE: return y * silu_slope(x);
	case GELU_TANH: return x * gelu_gate(x);
	case GELU_TANH_SLOPE: return y * gelu_tanh_slope(x);
	case SCALE: return x * c.p;
	case SHIFT: return x + c.p;
	case CLIP: return min_of(max_of(x, c.p), c.q);
	case CLIP_SLOPE: return x >= c.p && x <= c.q ? y : 0.f;
	case CLIPPED_RELU: return min_of(relu32(x), c.p);
	case CLIPPED_RELU_SLOPE: return c.p - x <= 0.f || x <= 0.f ? 0.f : y;
	case POWER_SCALAR: return pow32(x, c.p);
	}
	return 0;
}

__device__ __forceinline__ i64 met(const Spread &s, i64 i, i64 n) {
	if (s.period == 1) return 0;
	if (n <= 0xffffffffll) return (u32)i / (u32)s.hold % (u32)s.period;
	return i / s.hold % s.period;
}

// Elements i to i+3 of an operand, those below n.
__device__ inline void load(float *x, const Spread &s, i64 i, i64 n) {
	const float *from = (const float *)s.at;
	if (s.half) {
		const u16 *half = (const u16 *)s.at;
		for (int k = 0; k < 4; k++)
			x[k] = i + k < n ? from_bf16(half[s.period ? met(s, i + k, n) : i + k]) : 0.f;
		return;
	}
	if (s.period == 0) {
		if (i + 4 <= n && (s.at + 4 * i) % 16 == 0) {
			float4 v = *(const float4 *)(from + i);
			x[0] = v.x, x[1] = v.y, x[2] = v.z, x[3] = v.w;
			return;
		}
		for (int k = 0; k < 4; k++) x[k] = i + k < n ? from[i + k] : 0.f;
		return;
	}
	for (int k = 0; k < 4; k++) x[k] = i + k < n ? from[met(s, i + k, n)] : 0.f;
}

__device__ inline void store(float *to, const float *x, i64 i, i64 n) {
	if (i + 4 <= n && (u64)(to + i) % 16 == 0) {
		*(float4 *)(to + i) = make_float4(x[0], x[1], x[2], x[3]);
		return;
	}
	for (int k = 0; k < 4; k++)
		if (i + k < n) to[i + k] = x[k];
}

__device__ inline void noise(const Instruction &c, const Walk &window, const int *seed, float *x,
	i64 i) {
	u64 key = stream_key(seed, c.salt);
	Words w;
	if (!window.rank) w = philox_from(key, c.from + i);
	for (int k = 0; k < 4 && window.rank; k++) {
		i64 at[1];
		places(window, c.from + i + k, at, 1);
		w.w[k] = philox_word(key, at[0]);
	}
	for (int k = 0; k < 4; k++)
		if (c.op == DROPOUT) x[k] = w.w[k] <= c.limit ? x[k] * c.p : 0.f;
		else x[k] = x[k] * (1.f + c.p * (2.f * unit(w.w[k]) - 1.f));
}

extern "C" __global__ void __launch_bounds__(256) chain(PARAM Chain c,
	float *out) {
	float kept[8][4];
	for (i64 i = 4 * (blockIdx.x * (i64)blockDim.x + threadIdx.x); i < c.n;
		i += 4 * (i64)gridDim.x * blockDim.x) {
		float last[4] = {0, 0, 0, 0};
		for (int s = 0; s < c.count; s++) {
			const Instruction &ins = c.code[s];
			float x[4], y[4] = {0, 0, 0, 0};
			if (ins.a >= 0) load(x, c.in[ins.a], i, c.n);
			else for (int k = 0; k < 4; k++) x[k] = ~ins.a == s - 1 ? last[k] : kept[~ins.a][k];
			if (ins.op == DROPOUT || ins.op == JITTER) {
				noise(ins, c.window, (const int *)c.in[ins.b].at, x, i);
				for (int k = 0; k < 4; k++) last[k] = x[k];
			} else {
				if (ins.b < 0)
					for (int k = 0; k < 4; k++)
						y[k] = ~ins.b == s - 1 ? last[k] : kept[~ins.b][k];
				else if (ins.b != NONE) load(y, c.in[ins.b], i, c.n);
				for (int k = 0; k < 4; k++) last[k] = apply(ins, x[k], y[k]);
			}
			if (ins.round)
				for (int k = 0; k < 4; k++) last[k] = from_bf16(to_bf16(last[k]));
			if (ins.keep)
				for (int k = 0; k < 4; k++) kept[s][k] = last[k];
		}
		if (!c.half) store(out, last, i, c.n);
		else
			for (int k = 0; k < 4; k++)
				if (i + k < c.n) ((u16 *)out)[i + k] = to_bf16(last[k]);
	}
}
