module bed.test/stand-ins

go 1.26.0

tool (
	bed.test/stand-ins/flannel
	bed.test/stand-ins/pause
	bed.test/stand-ins/web
)
