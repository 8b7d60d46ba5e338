package main

import "github.com/spf13/cobra"

func newMatrix() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "matrix",
		Short: "Build, push and inspect term-similarity matrices",
		Long: `A matrix holds, for each term of a field, the terms most similar to it. It is built
into a file, which akin can serve as it is, or pushed to Redis as a new version,
which all proxies follow within a second of its activation.`,
		Example: `  akin matrix build --from-index http://127.0.0.1:9200 --index docs --field body --out docs.akin
  akin matrix push --redis redis://127.0.0.1:6379 --name docs --activate docs.akin
  akin matrix show --file docs.akin car`,
		Args: noSuchCommand,
		RunE: showHelp,
	}
	cmd.AddCommand(newMatrixBuild(), newMatrixPush(), newMatrixPull(), newMatrixList(), newMatrixActivate(), newMatrixRollback(),
		newMatrixPrune(), newMatrixShow(), newMatrixEdit(),
		newMatrixPlot(), newMatrixCheck(), newMatrixDiff(), newMatrixExport())
	return cmd
}
