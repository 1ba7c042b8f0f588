# The figures of README.md, from the data that tables.py --data writes:
#     gnuplot -e "folder = 'data'" figures.gp
# They follow figures 6, 7 and 8 of MadPipe (HAL hal-03025305).

set encoding utf8
set decimalsign '.'
networks = 'ResNet-50 ResNet-101 Inception-v3 DenseNet-121'
planners = 'PipeDream,\ depth PipeDream,\ original contiguous\ optimum MadPipe,\ optimistic MadPipe,\ safe best'
array colours[6] = [0xE69F00, 0xD55E00, 0x101010, 0x56B4E9, 0x0072B2, 0x009E73]
array widths[6] = [1.6, 1.6, 1.6, 1.6, 2.4, 1.4]
array names[6] = ['PipeDream, depth', 'PipeDream, original', 'contiguous optimum', 'MadPipe, optimistic', \
                  'MadPipe, safe', 'best']

text = 0x202020
set border 3 lc rgb 0x808080 lw 1
set tics nomirror out scale 0.5 textcolor rgb text
set grid ytics lt 1 lc rgb 0xD0D0D0 lw 0.5
set datafile missing 'nan'

# panel(i, j): row i from the top and column j, of so many
place(i, n, first, last) = first + (last - first) * i / n
panel_left(j, n) = place(j, n, 0.055, 1.0)
panel_right(j, n) = place(j + 1, n, 0.055, 1.0) - 0.025
panel_top(i, n) = 1 - place(i, n, 0.085, 0.955) - 0.025
panel_bottom(i, n) = 1 - place(i + 1, n, 0.085, 0.955) + 0.01

# ---- figure 6: periods ----

set terminal svg size 960, 1080 font 'sans-serif,12' background 'white' noenhanced
set output 'periods.svg'
set multiplot
set label 1 'Period (ms) against memory (GB), 12 GB/s; dashed: promised by the first phase' \
    at screen 0.02, 0.982 font 'sans-serif,15' textcolor rgb text
set xrange [2.7:16.3] noextend
set xtics 4
set yrange [0:*]
do for [i = 0:3] {
    do for [j = 0:2] {
        set lmargin at screen panel_left(j, 3)
        set rmargin at screen panel_right(j, 3)
        set tmargin at screen panel_top(i, 4)
        set bmargin at screen panel_bottom(i, 4) + 0.015
        set label 2 sprintf('%s, %d GPUs', word(networks, i + 1), 2 ** (j + 1)) at graph 0.97, 0.93 right \
            textcolor rgb text
        if (i == 0 && j == 0) {
            set key at screen 0.98, 0.968 right top horizontal maxrows 1 samplen 1.6 width -1 textcolor rgb text
        } else {
            unset key
        }
        plot for [k = 1:6] folder.'/periods.dat' index 3 * i + j using 1:k + 1 with linespoints pt 7 ps 0.25 \
                 lc rgb colours[k] lw widths[k] title names[k], \
             for [k = 1:5] folder.'/periods.dat' index 3 * i + j using 1:k + 7 with lines dt (4, 3) \
                 lc rgb colours[k] lw 1.1 notitle
        unset label 1
    }
}
unset multiplot

# ---- figure 7: means of ratios ----

set terminal svg size 960, 640 font 'sans-serif,12' background 'white' noenhanced
set output 'ratios.svg'
set multiplot
array others[4] = ['PipeDream, depth', 'PipeDream, all', 'PipeDream, original', 'contiguous optimum']
array shades[7] = [0x440154, 0x443983, 0x31688E, 0x21918C, 0x35B779, 0x90D743, 0xE0C000]
set label 1 'Period over that of MadPipe (safe) against memory (GB): geometric mean over networks and bandwidths' \
    at screen 0.02, 0.97 font 'sans-serif,15' textcolor rgb text
set yrange [0.9:3.4]
set ytics 0.2
set arrow 1 from graph 0, first 1.2 to graph 1, first 1.2 nohead lc rgb 0x808080 dt (2, 3)
do for [i = 0:3] {
    set lmargin at screen panel_left(i % 2, 2)
    set rmargin at screen panel_right(i % 2, 2)
    set tmargin at screen panel_top(i / 2, 2) - 0.02
    set bmargin at screen panel_bottom(i / 2, 2) + 0.035
    set label 2 others[i + 1] at graph 0.97, 0.93 right textcolor rgb text
    if (i == 0) {
        set key at screen 0.98, 0.95 right top horizontal maxrows 1 samplen 1.6 textcolor rgb text
    } else {
        unset key
    }
    plot for [k = 1:7] folder.'/ratios.dat' index i using 1:k + 1 with linespoints pt 7 ps 0.3 lw 1.6 \
             lc rgb shades[k] title sprintf('%d GPUs', k + 1)
    unset label 1
}
unset arrow 1
unset multiplot

# ---- figure 8: speedups ----

set terminal svg size 960, 1080 font 'sans-serif,12' background 'white' noenhanced
set output 'speedups.svg'
set multiplot
set label 1 'Speedup over one GPU with memory enough, against GPUs; 12 GB/s' \
    at screen 0.02, 0.982 font 'sans-serif,15' textcolor rgb text
set xrange [1.8:8.2] noextend
set xtics 1
set yrange [0:8]
set ytics 2
array memories[3] = [6, 8, 16]
do for [i = 0:3] {
    do for [j = 0:2] {
        set lmargin at screen panel_left(j, 3)
        set rmargin at screen panel_right(j, 3)
        set tmargin at screen panel_top(i, 4)
        set bmargin at screen panel_bottom(i, 4) + 0.015
        set label 2 sprintf('%s, %d GB', word(networks, i + 1), memories[j + 1]) at graph 0.03, 0.93 left \
            textcolor rgb text
        if (i == 0 && j == 0) {
            set key at screen 0.98, 0.968 right top horizontal maxrows 1 samplen 1.6 width -1 textcolor rgb text
        } else {
            unset key
        }
        plot x with lines dt (2, 3) lc rgb 0x808080 lw 1 notitle, \
             for [k = 1:6] folder.'/speedups.dat' index 3 * i + j using 1:k + 1 with linespoints pt 7 ps 0.3 \
                 lc rgb colours[k] lw widths[k] title names[k]
        unset label 1
    }
}
unset multiplot
