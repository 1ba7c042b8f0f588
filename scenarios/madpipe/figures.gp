# The figures of README.md, from the data that tables.py --data writes:
#     gnuplot -e "folder = 'data'" figures.gp
# They follow figures 6, 7 and 8 of MadPipe (HAL hal-03025305). run.sh makes them smaller.

set encoding utf8
set decimalsign '.'
networks = 'ResNet-50 ResNet-101 Inception-v3 DenseNet-121'
array names[5] = ['PipeDream, depth', 'PipeDream, original', 'contiguous optimum', 'MadPipe, optimistic', \
                  'MadPipe, safe']
array colours[5] = [0xE69F00, 0xD55E00, 0x101010, 0x56B4E9, 0x0072B2]
# thin on wide and drawn in this order, so that both of two equal curves are seen
array widths[5] = [4.0, 2.4, 1.2, 2.0, 4.6]
array order[5] = [5, 1, 2, 4, 3]
array shades[7] = [0x440154, 0x443983, 0x31688E, 0x21918C, 0x35B779, 0x90D743, 0xE0C000]

text = 0x202020
set border 3 lc rgb 0x808080 lw 1
set tics nomirror out scale 0.5 textcolor rgb text
set grid ytics lt 1 lc rgb 0xD0D0D0 lw 0.5
set datafile missing 'nan'
unset key

# In points: what title and key take above, and the numbers below a panel. `height` is that of the figure.
head = 72.0
foot = 40.0
# Edges of panel i of n between first and last, with a gap for the numbers beside it.
edge(i, n, first, last) = first + (last - first) * i / n
across(j, n) = sprintf('set lmargin at screen %g; set rmargin at screen %g', \
                       edge(j, n, 0.06, 1.03), edge(j + 1, n, 0.06, 1.03) - 0.055)
down(i, n) = sprintf('set tmargin at screen %g; set bmargin at screen %g', \
                     1 - edge(i, n, head / height, 1), 1 - edge(i + 1, n, head / height, 1) + foot / height)
heading(title) = sprintf('set label 1 "%s" at screen 0.02, 1 - 18 / height font "sans-serif,15" textcolor rgb text', title)
colour_key = 'do for [k = 1:5] { set label 10 + k names[k] at screen 0.02 + 0.155 * (k - 1), 1 - 44 / height textcolor rgb colours[k] }'
no_texts = 'unset label 1; do for [k = 1:7] { unset label 10 + k }'

# ---- figure 6: periods ----

height = 1000.0
set terminal svg size 960, height font 'sans-serif,12' background 'white' noenhanced
set output 'periods.svg'
set multiplot
eval heading('Period (ms) against memory (GB) at 12 GB/s; dashed: promised by the first phase; triangles: beyond the top')
eval colour_key
set xrange [2.7:16.3] noextend
set xtics 4
array most[12] = [600, 600, 400, 1000, 1000, 800, 500, 500, 400, 600, 500, 500]
do for [i = 0:3] {
    do for [j = 0:2] {
        eval across(j, 3)
        eval down(i, 4)
        top = 1.0 * most[3 * i + j + 1]
        set yrange [0:1.1 * top]
        set ytics top / 2
        set label 2 sprintf('%s, %d GPUs', word(networks, i + 1), 2 ** (j + 1)) at graph 0.98, 0.93 right \
            textcolor rgb text
        plot for [k = 1:5] folder.'/periods.dat' index 3 * i + j using 1:order[k] + 1 with lines \
                 lc rgb colours[order[k]] lw widths[order[k]], \
             for [k = 1:5] folder.'/periods.dat' index 3 * i + j using 1:(k == 3 ? NaN : column(k + 6)) \
                 with lines dt (4, 3) lc rgb colours[k] lw 1.1, \
             for [k = 1:5] folder.'/periods.dat' index 3 * i + j \
                 using ($1 + 0.14 * (k - 3)):(column(k + 1) > 1.1 * top ? 1.07 * top : NaN) \
                 with points pt 9 ps 0.6 lc rgb colours[k]
        eval no_texts
    }
}
unset multiplot

# ---- figure 7: means of ratios ----

height = 640.0
set terminal svg size 960, height font 'sans-serif,12' background 'white' noenhanced
set output 'ratios.svg'
set multiplot
array others[4] = ['PipeDream, depth', 'PipeDream, all', 'PipeDream, original', 'contiguous optimum']
eval heading('Period over that of MadPipe (safe) against memory (GB): mean over networks and bandwidths')
do for [k = 1:7] { set label 10 + k sprintf('%d GPUs', k + 1) at screen 0.02 + 0.1 * (k - 1), 1 - 44 / height textcolor rgb shades[k] }
set yrange [0.9:3]
set ytics 1, 0.5
set arrow 1 from graph 0, first 1.2 to graph 1, first 1.2 nohead lc rgb 0x606060 lw 1.2 dt (6, 4)
do for [i = 0:3] {
    eval across(i % 2, 2)
    eval down(i / 2, 2)
    set label 2 others[i + 1] at graph 0.98, 0.93 right textcolor rgb text
    plot for [k = 1:7] folder.'/ratios.dat' index i using 1:k + 1 with linespoints pt 7 ps 0.25 lw 1.6 \
             lc rgb shades[k]
    eval no_texts
}
unset arrow 1
unset multiplot

# ---- figure 8: speedups ----

height = 1000.0
set terminal svg size 960, height font 'sans-serif,12' background 'white' noenhanced
set output 'speedups.svg'
set multiplot
eval heading('Speedup over one GPU with memory enough, against GPUs, at 12 GB/s; a thin line on a wide one: equal')
eval colour_key
set xrange [1.8:8.2] noextend
set xtics 2
set yrange [0:8]
set ytics 2
array memories[3] = [6, 8, 16]
do for [i = 0:3] {
    do for [j = 0:2] {
        eval across(j, 3)
        eval down(i, 4)
        set label 2 sprintf('%s, %d GB', word(networks, i + 1), memories[j + 1]) at graph 0.02, 0.93 left \
            textcolor rgb text
        plot x with lines dt (2, 3) lc rgb 0x808080 lw 1, \
             for [k = 1:5] folder.'/speedups.dat' index 3 * i + j using 1:order[k] + 1 with lines \
                 lc rgb colours[order[k]] lw widths[order[k]]
        eval no_texts
    }
}
unset multiplot
