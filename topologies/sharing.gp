# The rate of one message over time, as `count` and as `max_min` share its link: sharing.svg.
# Columns of count.dat and max_min.dat: time in ps, task, rate in bytes/s.
set terminal svg size 820,320 font 'Helvetica,12' background rgb 'white'
set output 'sharing.svg'
set xlabel 'time [ms]'
set ylabel 'rate of the message [GB/s]'
set xrange [0:75]
set yrange [0:13]
set key outside right top
set border 3
set tics nomirror out
set grid ytics lt 1 lc rgb '#dddddd'
plot for [n = 1:2] word('max_min count', n).'.dat' using ($1 / 1e9):($2 == 1 ? $3 / 1e9 : NaN) \
    with steps lw 2 lc rgb word('#D55E00 #0072B2', n) title word('max\_min count', n)
