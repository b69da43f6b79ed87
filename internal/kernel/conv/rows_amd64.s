//go:build !portable

#include "textflag.h"

// Rows are handled in blocks of 8 elements. The last block ends with the row and
// overlaps the one before it, so that no element outside a row is touched. Rows
// of fewer than 8 elements are two overlapping blocks of 4, and those of fewer
// than 4 are moved one by one.

// func copyRowsAVX2(dst, src *float32, dstPitch, srcPitch, rows, n int)
TEXT ·copyRowsAVX2(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ dstPitch+16(FP), R8
	MOVQ srcPitch+24(FP), R9
	MOVQ rows+32(FP), CX
	MOVQ n+40(FP), DX
	SHLQ $2, R8
	SHLQ $2, R9
	CMPQ DX, $4
	JLT  ones
	CMPQ DX, $8
	JLT  fours
	LEAQ -32(DX*4), BX // of the last block

row:
	XORQ AX, AX

block:
	VMOVUPS (SI)(AX*1), Y0
	VMOVUPS Y0, (DI)(AX*1)
	ADDQ    $32, AX
	CMPQ    AX, BX
	JLT     block
	VMOVUPS (SI)(BX*1), Y0
	VMOVUPS Y0, (DI)(BX*1)
	ADDQ    R8, DI
	ADDQ    R9, SI
	DECQ    CX
	JNZ     row
	VZEROUPPER
	RET

fours:
	LEAQ -16(DX*4), BX

four:
	VMOVUPS (SI), X0
	VMOVUPS (SI)(BX*1), X1
	VMOVUPS X0, (DI)
	VMOVUPS X1, (DI)(BX*1)
	ADDQ    R8, DI
	ADDQ    R9, SI
	DECQ    CX
	JNZ     four
	RET

ones:
	XORQ AX, AX

one:
	MOVL (SI)(AX*4), BX
	MOVL BX, (DI)(AX*4)
	INCQ AX
	CMPQ AX, DX
	JLT  one
	ADDQ R8, DI
	ADDQ R9, SI
	DECQ CX
	JNZ  ones
	RET

// func evenRowsAVX2(dst, src *float32, dstPitch, srcPitch, rows, n int)
//
// A second load begins at an odd element, so that the element after the last even
// one is not touched.
TEXT ·evenRowsAVX2(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ dstPitch+16(FP), R8
	MOVQ srcPitch+24(FP), R9
	MOVQ rows+32(FP), CX
	MOVQ n+40(FP), DX
	SHLQ $2, R8
	SHLQ $2, R9
	CMPQ DX, $4
	JLT  ones
	CMPQ DX, $8
	JLT  fours
	LEAQ -32(DX*4), BX // of the last block

row:
	XORQ AX, AX

block:
	VMOVUPS (SI)(AX*2), Y0
	VSHUFPS $0xd8, 28(SI)(AX*2), Y0, Y0
	VPERMPD $0xd8, Y0, Y0
	VMOVUPS Y0, (DI)(AX*1)
	ADDQ    $32, AX
	CMPQ    AX, BX
	JLT     block
	VMOVUPS (SI)(BX*2), Y0
	VSHUFPS $0xd8, 28(SI)(BX*2), Y0, Y0
	VPERMPD $0xd8, Y0, Y0
	VMOVUPS Y0, (DI)(BX*1)
	ADDQ    R8, DI
	ADDQ    R9, SI
	DECQ    CX
	JNZ     row
	VZEROUPPER
	RET

fours:
	LEAQ -16(DX*4), BX

four:
	VMOVUPS (SI), X0
	VSHUFPS $0xd8, 12(SI), X0, X0
	VMOVUPS (SI)(BX*2), X1
	VSHUFPS $0xd8, 12(SI)(BX*2), X1, X1
	VMOVUPS X0, (DI)
	VMOVUPS X1, (DI)(BX*1)
	ADDQ    R8, DI
	ADDQ    R9, SI
	DECQ    CX
	JNZ     four
	RET

ones:
	XORQ AX, AX

one:
	MOVL (SI)(AX*8), BX
	MOVL BX, (DI)(AX*4)
	INCQ AX
	CMPQ AX, DX
	JLT  one
	ADDQ R8, DI
	ADDQ R9, SI
	DECQ CX
	JNZ  ones
	RET

// func interleaveRowsAVX2(dst, even, odd *float32, dstPitch, evenPitch, oddPitch, rows, pairs int)
TEXT ·interleaveRowsAVX2(SB), NOSPLIT, $0-64
	MOVQ dst+0(FP), DI
	MOVQ even+8(FP), SI
	MOVQ odd+16(FP), R10
	MOVQ dstPitch+24(FP), R8
	MOVQ evenPitch+32(FP), R9
	MOVQ oddPitch+40(FP), R11
	MOVQ rows+48(FP), CX
	MOVQ pairs+56(FP), DX
	SHLQ $2, R8
	SHLQ $2, R9
	SHLQ $2, R11
	CMPQ DX, $4
	JLT  ones
	CMPQ DX, $8
	JLT  fours
	LEAQ -32(DX*4), BX // of the last block

row:
	XORQ AX, AX

block:
	VMOVUPS    (SI)(AX*1), Y0
	VMOVUPS    (R10)(AX*1), Y1
	VUNPCKLPS  Y1, Y0, Y2
	VUNPCKHPS  Y1, Y0, Y3
	VPERM2F128 $0x20, Y3, Y2, Y0
	VPERM2F128 $0x31, Y3, Y2, Y1
	VMOVUPS    Y0, (DI)(AX*2)
	VMOVUPS    Y1, 32(DI)(AX*2)
	CMPQ       AX, BX
	JGE        next
	ADDQ       $32, AX
	CMPQ       AX, BX
	CMOVQGT    BX, AX
	JMP        block

next:
	ADDQ R8, DI
	ADDQ R9, SI
	ADDQ R11, R10
	DECQ CX
	JNZ  row
	VZEROUPPER
	RET

fours:
	LEAQ -16(DX*4), BX

four:
	VMOVUPS   (SI), X0
	VMOVUPS   (R10), X1
	VUNPCKLPS X1, X0, X2
	VUNPCKHPS X1, X0, X3
	VMOVUPS   X2, (DI)
	VMOVUPS   X3, 16(DI)
	VMOVUPS   (SI)(BX*1), X0
	VMOVUPS   (R10)(BX*1), X1
	VUNPCKLPS X1, X0, X2
	VUNPCKHPS X1, X0, X3
	VMOVUPS   X2, (DI)(BX*2)
	VMOVUPS   X3, 16(DI)(BX*2)
	ADDQ      R8, DI
	ADDQ      R9, SI
	ADDQ      R11, R10
	DECQ      CX
	JNZ       four
	RET

ones:
	XORQ AX, AX

one:
	MOVL (SI)(AX*4), BX
	MOVL BX, (DI)(AX*8)
	MOVL (R10)(AX*4), BX
	MOVL BX, 4(DI)(AX*8)
	INCQ AX
	CMPQ AX, DX
	JLT  one
	ADDQ R8, DI
	ADDQ R9, SI
	ADDQ R11, R10
	DECQ CX
	JNZ  ones
	RET
