package gemm

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/gomem/gomem/internal/kernel/pool"
)

// problem is a batch of products with its operands.
type problem struct {
	transA, transB            bool
	batch, m, n, k            int
	alpha, beta               float32
	lda, ldb, ldc             int
	strideA, strideB, strideC int
	a, b, c                   []float32
	epilogue                  Epilogue
}

func (x *problem) String() string {
	return fmt.Sprintf("batch=%d m=%d n=%d k=%d transA=%v transB=%v ld=%d,%d,%d stride=%d,%d,%d "+
		"alpha=%v beta=%v",
		x.batch, x.m, x.n, x.k, x.transA, x.transB, x.lda, x.ldb, x.ldc, x.strideA, x.strideB,
		x.strideC, x.alpha, x.beta)
}

// pack gives the problem the shortest strides and random operands.
func (x *problem) pack() {
	x.batch = max(1, x.batch)
	x.lda, x.ldb, x.ldc = x.k, x.n, x.n
	if x.transA {
		x.lda = x.m
	}
	if x.transB {
		x.ldb = x.k
	}
	x.strideA, x.strideB, x.strideC = x.m*x.k, x.k*x.n, x.m*x.n
	x.fill()
}

// fill makes random operands.
func (x *problem) fill() {
	rng := rand.New(rand.NewPCG(uint64(x.m), uint64(x.n*x.k)))
	random := func(trans bool, rows, cols, ld, stride int) []float32 {
		if trans {
			rows, cols = cols, rows
		}
		s := make([]float32, (x.batch-1)*stride+(rows-1)*ld+cols)
		for i := range s {
			s[i] = rng.Float32()*2 - 1
		}
		return s
	}
	x.a = random(x.transA, x.m, x.k, x.lda, x.strideA)
	x.b = random(x.transB, x.k, x.n, x.ldb, x.strideB)
	x.c = random(false, x.m, x.n, x.ldc, x.strideC)
}

// shifted returns the problem with operands so many elements further from an
// aligned address.
func (x *problem) shifted(a, b, c int) *problem {
	shift := func(s []float32, by int) []float32 {
		return append(make([]float32, by, by+len(s)), s...)[by:]
	}
	y := *x
	y.a, y.b, y.c = shift(x.a, a), shift(x.b, b), shift(x.c, c)
	return &y
}

// run computes the product in place.
func (x *problem) run(s *isa, p *pool.Pool) {
	x.product().compute(s, p)
}

// product returns the problem's description.
func (x *problem) product() Product {
	return Product{
		Batch: x.batch, M: x.m, N: x.n, K: x.k, Alpha: x.alpha, Beta: x.beta,
		A: Matrix{F32: x.a, LD: x.lda, Stride: x.strideA, Trans: x.transA},
		B: Matrix{F32: x.b, LD: x.ldb, Stride: x.strideB, Trans: x.transB},
		C: x.c, LDC: x.ldc, StrideC: x.strideC, Epilogue: x.epilogue,
	}
}

// result returns what the product makes of a copy of C.
func (x *problem) result(s *isa, p *pool.Pool) []float32 {
	y := *x
	y.c = append([]float32(nil), x.c...)
	y.run(s, p)
	return y.c
}

// element returns the exact element of the product, and the sum of the absolute
// values of its terms.
func (x *problem) element(mat, i, j int) (value, size float64) {
	add := func(v float64) { value += v; size += math.Abs(v) }
	for l := range x.k {
		ai, bi := i*x.lda+l, l*x.ldb+j
		if x.transA {
			ai = l*x.lda + i
		}
		if x.transB {
			bi = j*x.ldb + l
		}
		add(float64(x.alpha) * float64(x.a[mat*x.strideA+ai]) * float64(x.b[mat*x.strideB+bi]))
	}
	if x.beta != 0 {
		add(float64(x.beta) * float64(x.c[mat*x.strideC+i*x.ldc+j]))
	}
	return value, size
}

// check compares a result with the reference: elements of C, or every step-th of
// them, within the bound of a sum of k+3 roundings in any order, and everything
// between them as it was.
func (x *problem) check(got []float32, step int) error {
	want := append([]float32(nil), x.c...)
	bound := float64(x.k+3) * 0x1p-24
	for e := range x.batch * x.m * x.n {
		mat, i, j := e/(x.m*x.n), e/x.n%x.m, e%x.n
		at := mat*x.strideC + i*x.ldc + j
		want[at] = got[at]
		if e%step != 0 {
			continue
		}
		value, size := x.element(mat, i, j)
		if diff := math.Abs(float64(got[at]) - value); !(diff <= bound*size) {
			return fmt.Errorf("%v: element (%d, %d) of %d is %v, want %v", x, i, j, mat, got[at],
				value)
		}
	}
	return sameBits(got, want)
}

// sameBits returns an error that names the first difference.
func sameBits(got, want []float32) error {
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			return fmt.Errorf("element %d is %v, want %v", i, got[i], want[i])
		}
	}
	return nil
}
