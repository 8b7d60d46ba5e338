#include "go_asm.h"
#include "textflag.h"

// One of the six rows: adds its next number times the 16 numbers of the panel.
#define STEP(offset, number, left, right) \
	VBROADCASTSS offset(SI), number   \
	VFMADD231PS  Y12, number, left    \
	VFMADD231PS  Y13, number, right

// One of the six rows: stores its dot products and which are above its floor.
#define STORE(row, left, right) \
	VBROADCASTSS (tile_floors+4*row)(DI), Y12 \
	VCMPPS       $0x1e, Y12, left, Y13        \ // $0x1e: greater than, false for NaN.
	VMOVMSKPS    Y13, AX                      \
	VCMPPS       $0x1e, Y12, right, Y14       \
	VMOVMSKPS    Y14, BX                      \
	SHLL         $8, BX                       \
	ORL          BX, AX                       \
	MOVW         AX, (tile_above+2*row)(DI)   \
	ORL          AX, DX                       \
	VMOVUPS      left, (tile_dots+64*row)(DI) \
	VMOVUPS      right, (tile_dots+64*row+32)(DI)

// func multiplyFMA(t *tile, rows, panel []float32) bool
//
// Y0 to Y11 are the sums, two for each row.
TEXT ·multiplyFMA(SB), NOSPLIT, $0-57
	MOVQ   t+0(FP), DI
	MOVQ   rows_base+8(FP), SI
	MOVQ   panel_base+32(FP), BX
	MOVQ   panel_len+40(FP), CX
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	VXORPS Y4, Y4, Y4
	VXORPS Y5, Y5, Y5
	VXORPS Y6, Y6, Y6
	VXORPS Y7, Y7, Y7
	VXORPS Y8, Y8, Y8
	VXORPS Y9, Y9, Y9
	VXORPS Y10, Y10, Y10
	VXORPS Y11, Y11, Y11
	PCALIGN $32

dimension:
	SUBQ    $16, CX
	JLT     store
	VMOVUPS (BX), Y12
	VMOVUPS 32(BX), Y13
	STEP(0, Y14, Y0, Y1)
	STEP(4, Y15, Y2, Y3)
	STEP(8, Y14, Y4, Y5)
	STEP(12, Y15, Y6, Y7)
	STEP(16, Y14, Y8, Y9)
	STEP(20, Y15, Y10, Y11)
	ADDQ    $24, SI
	ADDQ    $64, BX
	JMP     dimension

store:
	XORL DX, DX
	STORE(0, Y0, Y1)
	STORE(1, Y2, Y3)
	STORE(2, Y4, Y5)
	STORE(3, Y6, Y7)
	STORE(4, Y8, Y9)
	STORE(5, Y10, Y11)
	VZEROUPPER
	TESTL DX, DX
	SETNE ret+56(FP)
	RET
