// Elementwise operations, alone and as instructions of a chain, which chain.cu interprets and
// chain.go writes a kernel of its own for. No product of an instruction is fused with a sum of
// another: a chain has the bits of its operations.

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
// An operation is a number that varies where chains are interpreted, and a constant elsewhere.
__device__ __forceinline__ float applied(int op, const Instruction &c, float x, float y) {
	switch (op) {
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
__device__ inline float apply(const Instruction &c, float x, float y) {
	return applied(c.op, c, x, y);
}

// What a random word makes of an element.
__device__ __forceinline__ float noisy(int op, const Instruction &c, float x, u32 word) {
	if (op == DROPOUT) return word <= c.limit ? x * c.p : 0.f;
	return x * (1.f + c.p * (2.f * unit(word) - 1.f));
}
__device__ __forceinline__ float rounded(float x) { return from_bf16(to_bf16(x)); }
