// Elementwise operations on integers and on double numbers, one at a time.

// What wraps is computed without signs, whose overflow C++ leaves open; an integer divided by
// zero, which the host refuses, is 0.
template <class T> __device__ T power_of(T a, T b) {
	if (negative(b)) return a == 1 || (a == (T)-1 && !(b & 1)) ? (T)1 : a == (T)-1 ? a : (T)0;
	u64 p = 1, square = (u64)a;
	for (; b > 0; b >>= 1) {
		if (b & 1) p *= square;
		square *= square;
	}
	return (T)p;
}
template <class T> __device__ T divided(int op, T a, T b) {
	if (b == 0) return 0;
	bool whole = negative(b) && b == (T)-1; // the smallest number divided by it would overflow
	T q = whole ? (T)(0 - (u64)a) : (T)(a / b), r = whole ? (T)0 : (T)(a % b);
	if (op == DIV) return q;
	return op == MOD && r != 0 && negative(r) != negative(b) ? (T)(r + b) : r;
}
template <class T> __device__ T number(int op, T a, T b) {
	u64 x = (u64)a, y = (u64)b, width = 8 * sizeof(T);
	switch (op) {
	case ADD: return (T)(x + y);
	case SUB: return (T)(x - y);
	case MUL: return (T)(x * y);
	case SQUARE: return (T)(x * x);
	case NEG: return (T)(0 - x);
	case ABS: return negative(a) ? (T)(0 - x) : a;
	case SIGN: return (T)((a > 0) - negative(a));
	case RELU: return negative(a) ? (T)0 : a;
	case MAXIMUM: return a > b ? a : b;
	case MINIMUM: return a < b ? a : b;
	case POWER: return power_of(a, b);
	case DIV: case MOD: case REMAINDER: return divided(op, a, b);
	case BIT_AND: return (T)(x & y);
	case BIT_OR: return (T)(x | y);
	case BIT_XOR: return (T)(x ^ y);
	case BIT_NOT: return (T)~x;
	case SHIFT_LEFT: return y < width ? (T)(x << y) : (T)0;
	case SHIFT_RIGHT: return y < width ? (T)(a >> y) : (T)(negative(a) ? -1 : 0);
	}
	return 0;
}
template <> __device__ inline double number(int op, double a, double b) {
	switch (op) {
	case ADD: return a + b;
	case SUB: return a - b;
	case MUL: return a * b;
	case DIV: return a / b;
	case MAXIMUM: return a > b || a != a ? a : b;
	case MINIMUM: return a < b || a != a ? a : b;
	case AT_LEAST: return a >= b ? 1 : 0;
	case POWER: return pow_signed(a, b);
	case MOD: return modulo(a, b);
	case REMAINDER: return fmod(a, b);
	case NEG: return -a;
	case EXP: return exp64(a);
	case LOG: return log64(a);
	case SQRT: return sqrt(a);
	case RSQRT: return 1 / sqrt(a);
	case SQUARE: return a * a;
	case RELU: return a < 0 ? 0 : a;
	case TANH: return tanh64(a);
	case SIGMOID: return sigmoid64(a);
	case ABS: return fabs(a);
	case SIGN: return (a > 0) - (a < 0);
	case FLOOR: return floor(a);
	case CEIL: return ceil(a);
	case TRUNC: return trunc(a);
	case ROUND: return rint(a);
	case RECIPROCAL: return 1 / a;
	case SIN: return sincos64(a).sin;
	case COS: return sincos64(a).cos;
	}
	return 0;
}
// type is that of operands and result; where there is one operand, both are it.
extern "C" __global__ void numbers(PARAM Walk w, void *out, const void *a, const void *b, int op,
	int type) {
	EACH(i, w.n) {
		i64 at[2];
		places(w, i, at, 2);
		switch (type) {
#define CASE(n, T) \
		case n: ((T *)out)[i] = number<T>(op, ((const T *)a)[at[0]], ((const T *)b)[at[1]]); break;
			INTEGERS(CASE)
			CASE(F64, double)
#undef CASE
		}
	}
}

// A product of matrices, each of whose elements a thread adds up in order.
template <class A, class B, class C, class S> __device__ void multiply_all(const Walk &w, C *out,
	const A *a, const B *b, i64 m, i64 n, i64 k, int ta, int tb) {
	EACH(i, w.n * m * n) {
		i64 at[2], row = i / n % m, column = i % n;
		places(w, i / (m * n), at, 2);
		const A *x = a + at[0] * m * k + (ta ? row : row * k);
		const B *y = b + at[1] * k * n + (tb ? column * k : column);
		S sum = 0;
		for (i64 p = 0; p < k; p++) sum += (S)x[p * (ta ? m : 1)] * (S)y[p * (tb ? 1 : n)];
		out[i] = (C)sum;
	}
}
extern "C" __global__ void multiply_numbers(PARAM Walk w, void *out, const void *a, const void *b,
	i64 m, i64 n, i64 k, int ta, int tb, int type_a, int type_b) {
#define MULTIPLY(A, B, C, S) \
	multiply_all<A, B, C, S>(w, (C *)out, (const A *)a, (const B *)b, m, n, k, ta, tb)
	if (type_a == F64) MULTIPLY(double, double, double, double);
	else if (type_a == I32) MULTIPLY(int, int, int, u32);
	else if (type_a == I8 && type_b == I8) MULTIPLY(signed char, signed char, int, u32);
	else if (type_a == I8) MULTIPLY(signed char, u8, int, u32);
	else if (type_b == I8) MULTIPLY(u8, signed char, int, u32);
	else MULTIPLY(u8, u8, int, u32);
#undef MULTIPLY
}
