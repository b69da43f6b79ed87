#include "textflag.h"

// func evensAVX2(dst, src *float32, blocks int)
//
// Of every 16 elements of src, the even ones are written to 8 of dst.
TEXT ·evensAVX2(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ blocks+16(FP), CX

loop:
	PREFETCHT0 2048(SI)            // rows are short, and the next ones follow
	VMOVUPS    (SI), Y0
	VSHUFPS    $0x88, 32(SI), Y0, Y0
	VPERMPD    $0xd8, Y0, Y0
	VMOVUPS    Y0, (DI)
	ADDQ       $64, SI
	ADDQ       $32, DI
	DECQ       CX
	JNZ        loop
	VZEROUPPER
	RET

// func interleaveAVX2(dst, even, odd *float32, blocks int)
//
// 8 elements of even and 8 of odd are written in turn to 16 of dst.
TEXT ·interleaveAVX2(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ even+8(FP), SI
	MOVQ odd+16(FP), DX
	MOVQ blocks+24(FP), CX

loop:
	VMOVUPS    (SI), Y0
	VMOVUPS    (DX), Y1
	VUNPCKLPS  Y1, Y0, Y2
	VUNPCKHPS  Y1, Y0, Y3
	VPERM2F128 $0x20, Y3, Y2, Y0
	VPERM2F128 $0x31, Y3, Y2, Y1
	VMOVUPS    Y0, (DI)
	VMOVUPS    Y1, 32(DI)
	ADDQ       $32, SI
	ADDQ       $32, DX
	ADDQ       $64, DI
	DECQ       CX
	JNZ        loop
	VZEROUPPER
	RET
