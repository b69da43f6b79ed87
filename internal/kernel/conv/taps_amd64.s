//go:build !portable

#include "textflag.h"

// func tapsAVX2(dst, src, filter *float32, terms *term, count, n int)
//
// dst[i] is the sum over the terms of filter[k]·src[at+i], added up in their
// order; n is at least 8. The last block ends with dst and overlaps the one before
// it.
TEXT ·tapsAVX2(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ filter+16(FP), DX
	MOVQ terms+24(FP), R8
	MOVQ count+32(FP), R9
	MOVQ n+40(FP), CX
	SHLQ $4, R9
	ADDQ R8, R9 // end of the terms

wide:
	CMPQ   CX, $32
	JLT    narrow
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	MOVQ   R8, AX

wideTerm:
	MOVQ         (AX), R10
	MOVQ         8(AX), R11
	VBROADCASTSS (DX)(R10*4), Y4
	VFMADD231PS  (SI)(R11*4), Y4, Y0
	VFMADD231PS  32(SI)(R11*4), Y4, Y1
	VFMADD231PS  64(SI)(R11*4), Y4, Y2
	VFMADD231PS  96(SI)(R11*4), Y4, Y3
	ADDQ         $16, AX
	CMPQ         AX, R9
	JLT          wideTerm
	VMOVUPS      Y0, (DI)
	VMOVUPS      Y1, 32(DI)
	VMOVUPS      Y2, 64(DI)
	VMOVUPS      Y3, 96(DI)
	ADDQ         $128, DI
	ADDQ         $128, SI
	SUBQ         $32, CX
	JMP          wide

narrow:
	TESTQ CX, CX
	JZ    done
	CMPQ  CX, $8
	JGE   block
	LEAQ  -32(DI)(CX*4), DI
	LEAQ  -32(SI)(CX*4), SI
	MOVQ  $8, CX

block:
	VXORPS Y0, Y0, Y0
	MOVQ   R8, AX

blockTerm:
	MOVQ         (AX), R10
	MOVQ         8(AX), R11
	VBROADCASTSS (DX)(R10*4), Y4
	VFMADD231PS  (SI)(R11*4), Y4, Y0
	ADDQ         $16, AX
	CMPQ         AX, R9
	JLT          blockTerm
	VMOVUPS      Y0, (DI)
	ADDQ         $32, DI
	ADDQ         $32, SI
	SUBQ         $8, CX
	JMP          narrow

done:
	VZEROUPPER
	RET
