@rem npm's scripts begin with the exec of a shell, so that signals reach the program itself; this is exec on Windows.
@%*
